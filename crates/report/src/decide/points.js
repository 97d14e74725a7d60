"use strict";
// Tips of charts: the nearest point under the pointer, or the point that the arrow keys chose. Without scripts, each
// point has its title.
for (const drawing of document.querySelectorAll(".drawing")) {
  const REACH = 40;
  const live = drawing.parentElement.querySelector("[aria-live]");
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.setAttribute("aria-hidden", "true");
  tip.hidden = true;
  drawing.append(tip);
  // A bar is a point as well. The browser's own tip would be a second one.
  const marks = [...drawing.querySelectorAll("circle:not(.named), rect.bar")].filter((mark) => mark.querySelector("title"));
  const points = marks.map((mark) => {
    const title = mark.querySelector("title");
    const text = title.textContent.split("\n");
    title.remove();
    return { mark, text, line: mark.parentElement };
  });
  let chosen = null;

  const shown = () => points.filter(({ mark }) => mark.getBoundingClientRect().width > 0);
  const middle = ({ mark }) => {
    const box = mark.getBoundingClientRect();
    return [box.left + box.width / 2, box.top + box.height / 2];
  };

  function show(point) {
    if (chosen) chosen.mark.classList.remove("chosen");
    chosen = point;
    tip.hidden = !point;
    if (!point) return;
    point.mark.classList.add("chosen");
    const [head, ...rows] = point.text;
    tip.replaceChildren(...[head, ...rows].map((text, at) => {
      const row = document.createElement("div");
      row.className = at === 0 ? "tip-row name" : "tip-row";
      row.textContent = text;
      return row;
    }));
    const outer = drawing.getBoundingClientRect();
    const [x, y] = middle(point);
    const room = (wanted, own, all) => Math.min(Math.max(wanted, 0), Math.max(0, all - own));
    const beside = x - outer.left + 14 + tip.offsetWidth <= outer.width ? x - outer.left + 14 : x - outer.left - 14 - tip.offsetWidth;
    tip.style.left = `${room(beside, tip.offsetWidth, outer.width)}px`;
    tip.style.top = `${room(y - outer.top - tip.offsetHeight - 10, tip.offsetHeight, outer.height)}px`;
  }

  function nearest(x, y) {
    let best = null;
    let least = REACH;
    for (const point of shown()) {
      const box = point.mark.getBoundingClientRect();
      const far = Math.hypot(Math.max(box.left - x, x - box.right, 0), Math.max(box.top - y, y - box.bottom, 0));
      if (far < least) [best, least] = [point, far];
    }
    return best;
  }

  drawing.addEventListener("pointermove", (event) => show(nearest(event.clientX, event.clientY)));
  drawing.addEventListener("pointerdown", (event) => show(nearest(event.clientX, event.clientY)));
  drawing.addEventListener("pointerleave", () => show(null));
  drawing.addEventListener("blur", () => show(null));
  addEventListener("resize", () => show(null));
  addEventListener("beforeprint", () => show(null));
  drawing.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const all = shown();
    const at = all.indexOf(chosen);
    // Left and right: the points of a line. Up and down: the first point of the line before or after it.
    const lines = [...new Set(all.map(({ line }) => line))];
    const line = lines.indexOf(chosen?.line);
    const first = (which) => all.findIndex((point) => point.line === lines[which]);
    const to = {
      ArrowRight: at + 1, ArrowLeft: at < 0 ? 0 : at - 1, Home: 0, End: all.length - 1,
      ArrowDown: first(line + 1), ArrowUp: line <= 0 ? 0 : first(line - 1),
    }[event.key];
    if (event.key === "Escape") { show(null); return; }
    if (to === undefined) return;
    event.preventDefault();
    if (!all[to]) return;
    show(all[to]);
    live.textContent = all[to].text.join(", ");
  });
}
