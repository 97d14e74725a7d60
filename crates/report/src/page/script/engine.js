"use strict";
// Runs in the page: a worker for each drive, which holds the model as WebAssembly and answers questions of the crate
// page-engine. What was answered once is kept.
const engine = (() => {
  const KEPT = 4000;
  // A worker that is busy with what nobody waits for any more gets so long, if its successor is on another machine.
  const PATIENCE_MS = 150;
  const answers = new Map();
  let module = null;
  let worker = null;

  // The bytes of the engine, compiled once; rejected where a browser has no WebAssembly, or no streams that unpack.
  function load() {
    module ??= (async () => {
      const packed = Uint8Array.from(atob(document.getElementById("engine").textContent), (one) => one.charCodeAt(0));
      const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
      worker = URL.createObjectURL(new Blob([document.getElementById("worker").textContent], { type: "text/javascript" }));
      return WebAssembly.compile(await new Response(stream).arrayBuffer());
    })();
    return module;
  }

  // What a run begins with, besides its work: the same means that the worker is ready sooner.
  // An experiment may take minutes, so that the next does not wait for it.
  const machineOf = ({ experiment, drive, set, power_limit_watts: watts, seed }) => JSON.stringify(experiment ?? [drive, set, watts, seed]);

  // Answers for one drive: `told` is called when there is another.
  function seat(told) {
    let running = null;
    let busy = null;
    let queue = [];
    let patience = 0;

    function keep(text, answer) {
      if (answers.size >= KEPT) answers.delete(answers.keys().next().value);
      answers.set(text, { text: answer, read: JSON.parse(answer) });
      told();
    }

    function stop() {
      running?.terminate();
      running = busy = null;
      clearTimeout(patience);
    }

    async function next() {
      if (busy || queue.length === 0) return;
      busy = queue.shift();
      const { text } = busy;
      try {
        const compiled = await load();
        if (!running) {
          running = new Worker(worker);
          running.onmessage = ({ data: { question, answer, failed } }) => {
            clearTimeout(patience);
            busy = null;
            if (failed === undefined) {
              keep(question, answer);
            } else {
              // Its memory may be in any state.
              stop();
              keep(question, JSON.stringify({ problems: [`The simulation broke off, perhaps for want of memory (${failed}).`] }));
            }
            next();
          };
          running.postMessage({ module: compiled });
        }
        running.postMessage({ question: text });
      } catch (error) {
        busy = null;
        keep(text, JSON.stringify({ problems: [`This browser cannot run the model: ${error}`] }));
        next();
      }
    }

    // From now on these questions only, the first first.
    function want(questions) {
      const texts = questions.map((one) => ({ text: JSON.stringify(one), machine: machineOf(one) }));
      queue = texts.filter(({ text }) => !answers.has(text) && text !== busy?.text);
      clearTimeout(patience);
      if (busy && queue.length && !texts.some(({ machine }) => machine === busy.machine)) {
        patience = setTimeout(() => { stop(); next(); }, PATIENCE_MS);
      }
      next();
    }

    // Nothing is wanted any more, and what runs is given up.
    function end() {
      queue = [];
      stop();
    }

    return { want, end };
  }

  return {
    seat,
    answer: (question) => answers.get(JSON.stringify(question))?.read,
    // Questions and answers as they were, for tests and for the curious.
    said: () => [...answers].map(([question, { text }]) => [question, text]),
  };
})();
