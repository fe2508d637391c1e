// The editor of workflow files: numbers beside the lines, problems marked there, Tab indents. It works without this.
"use strict";

(() => {
  const text = document.querySelector("textarea[data-editor]");
  if (!text) return;

  const marked = new Map();
  for (const part of text.dataset.marked.split(",").filter(Boolean)) {
    const [line, severity] = part.split(":");
    if (marked.get(Number(line)) !== "error") marked.set(Number(line), severity);
  }
  const numbers = document.createElement("div");
  numbers.className = "editor-numbers";
  numbers.setAttribute("aria-hidden", "true");
  text.before(numbers);

  let shown = 0;
  function draw() {
    const count = text.value.split("\n").length;
    if (count !== shown) {
      shown = count;
      numbers.replaceChildren(...Array.from({ length: count }, (_, index) => {
        const number = document.createElement("span");
        number.textContent = index + 1;
        if (marked.has(index + 1)) number.className = `is-${marked.get(index + 1)}`;
        return number;
      }));
    }
    numbers.scrollTop = text.scrollTop;
  }
  text.addEventListener("input", draw);
  text.addEventListener("scroll", () => { numbers.scrollTop = text.scrollTop; });
  new ResizeObserver(() => { numbers.style.height = `${text.clientHeight}px`; draw(); }).observe(text);
  draw();

  function goTo(line) {
    const lines = text.value.split("\n");
    const start = lines.slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0);
    text.focus();
    text.setSelectionRange(start, start + (lines[line - 1] ?? "").length);
    text.scrollTop = Math.max(0, (text.scrollHeight / lines.length) * (line - 4));
    text.scrollIntoView({ block: "center" });
  }
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-line]");
    if (!link || !link.dataset.line) return;
    event.preventDefault();
    goTo(Number(link.dataset.line));
  });

  // Tab indents while Escape was not pressed just before: whoever uses the keyboard can still leave
  let leaves = false;
  text.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { leaves = true; return; }
    if (event.key === "Tab" && !event.shiftKey && !leaves && !event.ctrlKey && !event.altKey) {
      event.preventDefault();
      document.execCommand("insertText", false, "  ");
    }
    if (event.key !== "Tab") leaves = false;
  });

  // Nothing typed is lost by leaving by mistake
  const before = text.value;
  let sent = false;
  text.form.addEventListener("submit", () => { sent = true; });
  window.addEventListener("beforeunload", (event) => {
    if (!sent && text.value !== before) event.preventDefault();
  });
})();
