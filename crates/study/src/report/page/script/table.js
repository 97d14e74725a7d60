"use strict";
// The data under a chart as a table, made when it is opened, and as CSV.
const table = (() => {
  const { element } = controls;

  // `content` is { caption, head: [text], rows: [[value or null]], formats: [function] }.
  function build(content) {
    const made = element("table", {}, element("caption", {}, content.caption));
    const head = element("tr");
    content.head.forEach((text) => head.append(element("th", { scope: "col" }, text)));
    made.append(element("thead", {}, head));
    const body = element("tbody");
    for (const row of content.rows) {
      const line = element("tr");
      row.forEach((value, at) => {
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

  function csv(content) {
    const quoted = (value) => {
      const text = value === null || value === undefined ? "" : String(value);
      return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    };
    return [content.head, ...content.rows].map((row) => row.map(quoted).join(",")).join("\n") + "\n";
  }

  // A closed <details>; `content` is asked for at each opening, because the chart's choices change it.
  function details(name, content) {
    const scroll = element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `${name}: table` });
    const save = element("button", { type: "button", class: "quiet" }, "Save as CSV");
    const made = element("details", { class: "data" }, element("summary", {}, "The data as a table"), scroll, save);
    const fill = () => { if (made.open) scroll.replaceChildren(build(content())); };
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
