"use strict";
// Published figures of the ledger, and the user's measured ones, for the charts that show the same quantity of the same workload.
const published = (() => {
  const all = data.review.published ?? [];

  const standing = { fitted: "fitted to it", measured: "your measurement" };

  // Those of a chapter whose settings have these values, as points at `setting`: { drive, x, y, name, like, one }.
  function points(chapter, wanted, of, metric, setting) {
    return all.filter((one) => one.chapter === chapter && one.of === of && one.metric === metric
      && !data.hidden.has(one.drive)
      && Object.entries(wanted).every(([key, value]) => one.settings[key] === value)
      && one.settings[setting] !== undefined)
      .map((one) => ({
        drive: one.drive, x: one.settings[setting], y: one.value, like: one.differs.length === 0, one,
        name: `${one.row}, ${one.stands === "measured" ? "measured" : "published"}: ${one.conditions}${one.differs.length ? ` (${one.differs.join(", ")})` : ""}`,
      }));
  }

  // The published figures on a chart as a table.
  function table(points, write) {
    return {
      caption: "Published figures on this chart",
      head: ["Row", "Drive", "Published", "Conditions", "Other than here", "Source", "The model is"],
      formats: [String, String, write, String, String, String, String],
      rows: points.map(({ one }) => [
        one.row, data.review.drives[one.drive].label, one.value, `${one.what}; ${one.conditions}`,
        one.differs.join(", ") || null, one.source, standing[one.stands] ?? "not fitted to it",
      ]),
    };
  }

  const any = (chapter) => all.some((one) => one.chapter === chapter);

  return { points, table, any };
})();
