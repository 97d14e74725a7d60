"use strict";
// The data under a chart as a table, made when it is opened, and as CSV.
const table = (() => {
  const { element } = controls;

  // `content` is { caption, head: [text], rows: [[value or null]], formats: [function] }; of its columns only those
  // that are asked for.
  function build(content, columns = content.head.map((_, at) => at)) {
    const made = element("table", {}, element("caption", {}, content.caption));
    const head = element("tr");
    columns.forEach((at) => head.append(element("th", { scope: "col" }, content.head[at])));
    made.append(element("thead", {}, head));
    const body = element("tbody");
    for (const row of content.rows) {
      const line = element("tr");
      columns.forEach((at) => {
        const value = row[at];
        const text = value === null || value === undefined ? "–" : content.formats[at](value);
        const cell = element(at === 0 ? "th" : "td", at === 0 ? { scope: "row" } : {}, text);
        if (typeof value === "number") cell.dataset.value = value;
        line.append(cell);
      });
      body.append(line);
    }
    made.append(body);
    return made;
  }

  // On paper nothing scrolls: what is wider than the sheet goes on in a table below, with its first columns again.
  function paper(content, room, scroll) {
    const whole = build(content);
    scroll.replaceChildren(whole);
    const wide = [...whole.tHead.rows[0].cells].map((cell) => cell.offsetWidth);
    const fixed = typeof content.rows[0]?.[1] === "string" ? [0, 1] : [0];
    const start = fixed.reduce((sum, at) => sum + wide[at], 0);
    const parts = [[]];
    let used = start;
    for (let at = fixed.length; at < wide.length; at += 1) {
      if (used + wide[at] > room && parts.at(-1).length) { parts.push([]); used = start; }
      parts.at(-1).push(at);
      used += wide[at];
    }
    return parts.map((part) => build(content, [...fixed, ...part]));
  }

  function csv(content) {
    const quoted = (value) => {
      const text = value === null || value === undefined ? "" : String(value);
      return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    };
    return [content.head, ...content.rows].map((row) => row.map(quoted).join(",")).join("\n") + "\n";
  }

  // A closed <details>; `content` is asked for at each opening, because the chart's choices change it.
  function details(name, content, title = "The data as a table") {
    const scroll = element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `${name}: ${title}` });
    const save = element("button", { type: "button", class: "quiet" }, "Save as CSV");
    const made = element("details", { class: "data" }, element("summary", {}, title), scroll, save);
    const fill = () => {
      if (!made.open) return;
      const printing = document.documentElement.classList.contains("printing");
      scroll.replaceChildren(...(printing ? paper(content(), theme.SHEET, scroll) : [build(content())]));
    };
    made.addEventListener("toggle", fill);
    save.addEventListener("click", () => {
      const link = element("a", { download: `${name}.csv` });
      link.href = URL.createObjectURL(new Blob([csv(content())], { type: "text/csv" }));
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    });
    return { made, fill };
  }

  return { build, details };
})();
