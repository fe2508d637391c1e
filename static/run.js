// The page of a run: says when it is stale, keeps places while pieces are renewed, and moves the slider of the history.
"use strict";

(() => {
  let staleSince = null;

  function mark(isStale) {
    const live = document.getElementById("live-mark");
    if (!live || live.classList.contains("is-over")) return;
    if (isStale && staleSince === null) staleSince = new Date();
    if (!isStale) staleSince = null;
    live.classList.toggle("is-stale", isStale);
    live.classList.toggle("is-live", !isStale);
    const words = live.querySelector("[data-live-words]");
    if (words) words.textContent = isStale ? `Stale since ${staleSince.toLocaleTimeString()}` : "Live";
  }

  const isPoll = (event) => event.target && event.target.id === "poll";
  for (const name of ["htmx:sendError", "htmx:timeout"]) {
    document.addEventListener(name, (event) => { if (isPoll(event)) mark(true); });
  }
  document.addEventListener("htmx:afterRequest", (event) => {
    const xhr = event.detail.xhr;
    if (!isPoll(event) || !xhr || xhr.status === 0) return;
    mark(xhr.status !== 304 && (xhr.status < 200 || xhr.status >= 300));
  });
  // a refusal in answer to the poll is told by the mark; it must not replace anything
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (isPoll(event) && event.detail.xhr.status >= 400) event.detail.shouldSwap = false;
  });
  // a page in the background does not ask
  document.addEventListener("htmx:confirm", (event) => {
    if (isPoll(event) && document.hidden) event.preventDefault();
  });

  function isInUse(piece) {
    if (piece.querySelector("details.menu[open]")) return true;
    const selection = document.getSelection();
    return selection && !selection.isCollapsed && piece.contains(selection.anchorNode);
  }

  // Pieces that scroll stay where they are when they are renewed
  const places = new Map();
  const scrollers = ".graph-scroll, pre";
  document.addEventListener("htmx:oobBeforeSwap", (event) => {
    const target = event.detail.target;
    if (!target) return;
    // nobody is disturbed in the middle of something; the next change renews the piece
    if (target.id !== "poll" && isInUse(target)) { event.detail.shouldSwap = false; return; }
    places.set(target.id, [...target.querySelectorAll(scrollers)].map((one) => [one.scrollLeft, one.scrollTop]));
  });
  document.addEventListener("htmx:oobAfterSwap", (event) => {
    const target = event.detail.target && document.getElementById(event.detail.target.id);
    const kept = target && places.get(target.id);
    if (!kept) return;
    [...target.querySelectorAll(scrollers)].forEach((one, index) => {
      if (kept[index]) [one.scrollLeft, one.scrollTop] = kept[index];
    });
    showOpenRow();
  });

  // The step beside the timeline
  const panel = () => document.getElementById("step-panel");
  function showOpenRow() {
    const visit = panel() && panel().querySelector('input[name="panel"]');
    for (const row of document.querySelectorAll(".is-open-panel")) row.classList.remove("is-open-panel");
    const row = visit && document.getElementById(`row-v${visit.value}`);
    if (row) row.classList.add("is-open-panel");
    if (panel()) rememberPanel(visit ? visit.value : null);
  }
  // so that reloading and sharing the address show the same step
  function rememberPanel(visit) {
    const here = new URL(location.href);
    if (visit === null) here.searchParams.delete("panel"); else here.searchParams.set("panel", visit);
    if (here.href !== location.href) history.replaceState(history.state, "", here);
  }
  function closePanel() {
    const visit = panel() && panel().querySelector('input[name="panel"]');
    if (!visit) return;
    const link = document.getElementById(`link-v${visit.value}`);
    panel().replaceChildren();
    showOpenRow();
    if (link) link.focus();
  }
  // a click that opens a tab or a window stays one
  document.addEventListener("click", (event) => {
    const link = event.target.closest("[data-panel]");
    if (link && (event.ctrlKey || event.metaKey || event.shiftKey)) event.stopPropagation();
  }, true);
  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.target.id !== "step-panel") return;
    event.target.scrollTop = 0;
    showOpenRow();
  });
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-close-panel]")) { event.preventDefault(); closePanel(); }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !event.target.closest("input, textarea, select")) closePanel();
  });

  // A slider beside the number of the revision
  document.addEventListener("DOMContentLoaded", () => {
    showOpenRow();
    for (const slider of document.querySelectorAll("[data-slider]")) {
      const field = document.getElementById(slider.dataset.slider);
      slider.hidden = false;
      slider.addEventListener("input", () => { field.value = slider.value; });
      slider.addEventListener("change", () => { slider.form.requestSubmit(); });
      field.addEventListener("input", () => { slider.value = field.value; });
    }
  });
})();
