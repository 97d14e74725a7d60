"use strict";
// Published figures of the ledger, and the user's measured ones, for the charts that show the same quantity of the same workload.
const published = (() => {
  const all = data.review.published ?? [];

  const standing = { fitted: "fitted to it", measured: "your measurement" };

  // What of a figure's place on a chart is not a point: a line across it (the greatest of what is swept) or down it (a knee).
  const lines = { greatest: "across", knee: "down" };

  // Those of a chapter whose settings have these values, at `setting`:
  // { drive, x, y, lies, ends: [least, most], name, like, one }. Of a range or bound `lies` at y (or x) is its end or middle.
  function points(chapter, wanted, of, metric, setting) {
    // Of a load of one direction that direction is all of it.
    const has = (one) => one.of === of || (of === "total" && one.of === one.settings.direction);
    return all.filter((one) => one.chapter === chapter && has(one) && one.metric === metric
      && !data.hidden.has(one.drive)
      && Object.entries(wanted).every(([key, value]) => one.settings[key] === value)
      && (one.form === "ratio" || (one.settings[setting] === undefined) === (one.form in lines)))
      .map((one) => {
        const ends = [one.value ?? one.least ?? null, one.value ?? one.most ?? null];
        const known = ends.filter((end) => end !== null);
        const at = known.reduce((sum, end) => sum + end, 0) / known.length;
        const knee = one.form === "knee";
        return {
          drive: one.drive, lies: lines[one.form], ends, like: one.differs.length === 0, one,
          drawn: one.form !== "ratio",
          x: knee ? at : one.settings[setting] ?? null, y: knee ? null : at,
          name: `${one.row}, ${one.stands === "measured" ? "measured" : "published"}: ${one.conditions}${one.differs.length ? ` (${one.differs.join(", ")})` : ""}`,
        };
      });
  }

  // A figure of the reader's own in the place of a published one.
  const ring = (drive, x, y, name) => ({ drive, x, y, name, ends: [y, y], like: true, drawn: true, one: { form: "figure" } });

  // A published value in words: a number, a range or a bound.
  function words([least, most], write) {
    if (least === most) return write(least);
    if (least === null) return `at most ${write(most)}`;
    return most === null ? `${write(least)} or more` : `${write(least)} to ${write(most)}`;
  }

  // How a value of this form is written.
  function writing(one, view) {
    if (one.form === "ratio") return (value) => `${format.digits(value)} times`;
    return one.form === "knee" ? (value) => `${view.x.name} ${view.x.format(value)}` : view.y.format;
  }

  // The published figures on a chart as a table; a plain number stays one.
  function table(view) {
    const places = { greatest: "the greatest", knee: "where it rises no more", ratio: "one against another" };
    return {
      caption: "Published figures on this chart",
      head: ["Row", "Drive", "Published", "Here", "Conditions", "Other than here", "Source", "The model is"],
      formats: Array(8).fill((value) => (typeof value === "number" ? view.y.format(value) : value)),
      rows: view.published.map(({ one, ends }) => {
        const write = writing(one, view);
        const plain = (value) => (one.form === "knee" || one.form === "ratio" ? write(value) : value);
        return [
          one.row, data.review.drives[one.drive].label,
          one.value === null ? words(ends, write) : plain(one.value), one.here === undefined ? null : plain(one.here),
          [one.what, places[one.form], one.conditions].filter(Boolean).join("; "),
          one.differs.join(", ") || null, one.source, standing[one.stands] ?? "not fitted to it",
        ];
      }),
    };
  }

  const any = (chapter) => all.some((one) => one.chapter === chapter);

  return { points, ring, table, words, writing, any };
})();
