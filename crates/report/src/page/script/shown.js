"use strict";
// Which drives the charts show: a box to tick for each, beside the contents, and in the address.
const shown = (() => {
  const { element } = controls;
  const boxes = [];

  function start(changed) {
    const row = document.querySelector(".contents .drives");
    // Of one drive there is nothing to choose.
    if (!row || data.review.drives.length < 2) return;
    data.review.drives.forEach((drive, at) => {
      const box = element("input", { type: "checkbox", id: `show-${drive.id}` });
      boxes.push(box);
      box.addEventListener("change", () => {
        if (box.checked) data.hidden.delete(at); else data.hidden.add(at);
        address.keep("hide", [...data.hidden].map((one) => data.review.drives[one].id).join(",") || null);
        changed();
      });
      row.append(element("label", { class: "drive-box" }, box, marks.swatch(at), drive.label));
    });
    sync();
  }

  function sync() {
    boxes.forEach((box, at) => { box.checked = !data.hidden.has(at); });
  }

  function restore() {
    const ids = (address.get("hide") ?? "").split(",");
    data.hidden.clear();
    data.review.drives.forEach((drive, at) => { if (ids.includes(drive.id)) data.hidden.add(at); });
    sync();
  }

  return { start, restore };
})();

// The contents say where the reader is.
const contents = (() => {
  function start() {
    const links = new Map([...document.querySelectorAll(".contents a")].map((link) => [link.hash.slice(1), link]));
    const sections = [...document.querySelectorAll("main > section[id]")].filter((one) => links.has(one.id));
    let pending = 0;
    function mark() {
      pending = 0;
      const line = document.querySelector(".contents").getBoundingClientRect().bottom + 40;
      const here = sections.filter((one) => one.getBoundingClientRect().top <= line).at(-1);
      for (const [id, link] of links) {
        const current = id === here?.id;
        if (current === link.hasAttribute("aria-current")) continue;
        if (!current) { link.removeAttribute("aria-current"); continue; }
        link.setAttribute("aria-current", "true");
        const list = link.closest("ol");
        list.scrollTo({ left: link.offsetLeft - list.offsetLeft - list.clientWidth / 2 + link.offsetWidth / 2 });
      }
    }
    // A link's target must not end up under the contents, which take a line or more.
    const bar = document.querySelector(".contents");
    const clear = () => { document.documentElement.style.scrollPaddingTop = `${bar.offsetHeight + 24}px`; };
    new ResizeObserver(clear).observe(bar);
    clear();
    const soon = () => { pending ||= requestAnimationFrame(mark); };
    addEventListener("scroll", soon, { passive: true });
    // What is drawn late moves what is below it, and that is no scrolling.
    new ResizeObserver(soon).observe(document.querySelector("main"));
    mark();
  }
  return { start };
})();
