"use strict";
// A worker of the page: one drive's engine, which answers questions one after the other. The text of this file is data to
// the page, which makes a worker of it: a page from a file may load none.
let engine = null;
let seat = 0;

function answer(question) {
  const bytes = new TextEncoder().encode(question);
  const room = engine.room(seat, bytes.length) >>> 0;
  new Uint8Array(engine.memory.buffer, room, bytes.length).set(bytes);
  const length = engine.ask(seat) >>> 0;
  const at = engine.answer(seat) >>> 0;
  return new TextDecoder().decode(new Uint8Array(engine.memory.buffer, at, length));
}

onmessage = ({ data }) => {
  try {
    if (data.module) {
      engine = new WebAssembly.Instance(data.module, {}).exports;
      seat = engine.new_engine();
      return;
    }
    postMessage({ question: data.question, answer: answer(data.question) });
  } catch (error) {
    postMessage({ question: data.question, failed: String(error) });
  }
};
