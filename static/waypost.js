// Waypost: small conveniences. Everything works without this file.
"use strict";

(() => {
  const MINUTE = 60, HOUR = 3600, DAY = 86400;

  // The same words as workflows/pages/wording.py
  function ageWords(seconds) {
    const length = Math.abs(seconds);
    let words;
    if (length < 60) words = `${Math.floor(length)} s`;
    else if (length < HOUR) words = `${Math.floor(length / MINUTE)} min`;
    else if (length < 2 * DAY) words = `${Math.floor(length / HOUR)} h`;
    else if (length < 60 * DAY) words = `${Math.floor(length / DAY)} d`;
    else return null;
    if (seconds < 0) return `in ${words}`;
    return seconds < 5 ? "just now" : `${words} ago`;
  }

  function freshenAges() {
    for (const time of document.querySelectorAll("time[data-age]")) {
      const words = ageWords((Date.now() - Date.parse(time.dateTime)) / 1000);
      if (words !== null && words !== time.textContent) time.textContent = words;
    }
  }
  setInterval(freshenAges, 10_000);

  function isTyping(target) {
    return target.closest("input, textarea, select, [contenteditable]") !== null;
  }

  // "/" goes to the search field; "g" and a letter go to a place
  let waitsForPlace = false;
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") {
      for (const menu of document.querySelectorAll("details.menu[open]")) menu.open = false;
      if (event.target.id === "search") event.target.blur();
      return;
    }
    if (isTyping(event.target)) return;
    if (waitsForPlace) {
      waitsForPlace = false;
      const link = document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
      if (link) { event.preventDefault(); link.click(); }
      return;
    }
    if (event.key === "g") {
      waitsForPlace = true;
      setTimeout(() => { waitsForPlace = false; }, 1200);
    } else if (event.key === "/") {
      const search = document.getElementById("search");
      if (search) { event.preventDefault(); search.focus(); search.select(); }
    }
  });

  // An open menu closes when something else is clicked
  document.addEventListener("click", (event) => {
    for (const menu of document.querySelectorAll("details.menu[open]")) {
      if (!menu.contains(event.target)) menu.open = false;
    }
    const copy = event.target.closest("[data-copy]");
    if (copy && navigator.clipboard) {
      navigator.clipboard.writeText(copy.dataset.copy).then(() => {
        copy.dataset.copied = "";
        setTimeout(() => { delete copy.dataset.copied; }, 1500);
      });
    }
  });

  // A box with data-check-all="name" ticks every box of that name in its form
  document.addEventListener("change", (event) => {
    const all = event.target.closest("[data-check-all]");
    if (!all) return;
    for (const box of document.querySelectorAll(`input[type="checkbox"][name="${CSS.escape(all.dataset.checkAll)}"]`)) {
      box.checked = all.checked;
      box.dispatchEvent(new Event("input", { bubbles: true }));
    }
  });

  // A form is sent once, however often its button is pressed
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.method !== "post" || form.hasAttribute("hx-post")) return;
    if (form.dataset.sent) { event.preventDefault(); return; }
    form.dataset.sent = "1";
    setTimeout(() => { delete form.dataset.sent; }, 4000);
  });
  window.addEventListener("pageshow", () => {
    for (const form of document.querySelectorAll("form[data-sent]")) delete form.dataset.sent;
  });
})();
