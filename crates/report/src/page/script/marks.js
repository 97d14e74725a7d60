"use strict";
// How drives are told apart: colour, dashes and the shape of the marker, so that colour alone never matters.
const marks = (() => {
  const DASHES = [[], [7, 4], [2, 3], [10, 3, 2, 3], [5, 2], [1, 4]];
  const SHAPES = ["disc", "square", "triangle", "diamond", "cross", "ring"];

  const dash = (drive) => DASHES[drive % DASHES.length];
  // From the seventh drive on colours come again, with another shape.
  const shapeOf = (drive) => SHAPES[(drive + Math.floor(drive / SHAPES.length)) % SHAPES.length];
  const colour = (drive) => theme.colour(`--drive-${drive % 6}`);

  // Draws the marker of a drive around (x, y) in the colours of the context, whatever lines were drawn before.
  function marker(context, drive, x, y, size) {
    const shape = shapeOf(drive);
    const { fillStyle } = context;
    context.setLineDash([]);
    context.beginPath();
    if (shape === "disc" || shape === "ring") context.arc(x, y, size, 0, 2 * Math.PI);
    if (shape === "square") context.rect(x - size * 0.88, y - size * 0.88, size * 1.76, size * 1.76);
    if (shape === "triangle") polygon(context, x, y, size * 1.25, 3);
    if (shape === "diamond") polygon(context, x, y, size * 1.25, 4);
    if (shape === "cross") {
      context.moveTo(x - size, y - size);
      context.lineTo(x + size, y + size);
      context.moveTo(x - size, y + size);
      context.lineTo(x + size, y - size);
    }
    if (shape === "ring") { context.fillStyle = theme.colour("--paper"); }
    if (shape !== "cross") context.fill();
    if (shape === "cross" || shape === "ring") context.stroke();
    context.fillStyle = fillStyle;
  }

  // A published figure: a dot in a ring, larger than any marker of a drive.
  function target(context, x, y, size) {
    context.setLineDash([]);
    context.beginPath();
    context.arc(x, y, size, 0, 2 * Math.PI);
    context.stroke();
    context.beginPath();
    context.arc(x, y, size * 0.36, 0, 2 * Math.PI);
    context.fill();
  }

  function polygon(context, x, y, size, corners) {
    for (let corner = 0; corner < corners; corner += 1) {
      const angle = -Math.PI / 2 + (corner * 2 * Math.PI) / corners;
      const [px, py] = [x + size * Math.cos(angle), y + size * Math.sin(angle)];
      if (corner === 0) context.moveTo(px, py); else context.lineTo(px, py);
    }
    context.closePath();
  }

  // A small picture of line and marker, for legends and headings.
  function swatch(drive) {
    const canvas = controls.element("canvas", { class: "swatch", width: "68", height: "24", "aria-hidden": "true" });
    canvas.dataset.drive = drive;
    paint(canvas);
    return canvas;
  }

  function paint(canvas) {
    const drive = +canvas.dataset.drive;
    const context = canvas.getContext("2d");
    context.clearRect(0, 0, 68, 24);
    context.strokeStyle = context.fillStyle = colour(drive);
    context.lineWidth = 4;
    context.setLineDash(dash(drive).map((length) => length * 2));
    context.beginPath();
    context.moveTo(2, 12);
    context.lineTo(66, 12);
    context.stroke();
    context.setLineDash([]);
    marker(context, drive, 34, 12, 7);
  }

  // The same for a published figure of a drive, in the box under the pointer.
  function targetSwatch(drive) {
    const canvas = controls.element("canvas", { class: "swatch", width: "68", height: "24", "aria-hidden": "true" });
    const context = canvas.getContext("2d");
    context.strokeStyle = context.fillStyle = colour(drive);
    context.lineWidth = 3;
    target(context, 34, 12, 9);
    return canvas;
  }

  return { dash, colour, marker, target, swatch, targetSwatch, repaint: () => document.querySelectorAll("canvas.swatch[data-drive]").forEach(paint) };
})();
