"use strict";
// Runs in the page: a worker for each drive, which holds the model as WebAssembly and answers questions of the crate
// page-engine. What was answered once is kept.
const engine = (() => {
  const KEPT = 4000;
  // A worker that is busy with what nobody waits for any more gets so long, if its successor is on another machine: or as long
  // as its first answer took, if the other has the same members, which a new worker would have to bring into their state.
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
  const membersOf = (question) => machineOf(question.set ? { ...question, set: question.set.filter(([key]) => !key.startsWith("tier.")) } : question);
  const asked = (question, text = question) => ({ text: JSON.stringify(text), machine: machineOf(question), members: membersOf(question) });

  // Answers for one drive: `told` is called when there is another.
  function seat(told) {
    let running = null;
    let busy = null;
    let queue = [];
    let patience = 0;
    // How long the first answer of this worker took, and what it has been told to prepare.
    let begun = 0;
    let first = null;
    let prepared = null;

    function keep(text, answer) {
      if (answers.size >= KEPT) answers.delete(answers.keys().next().value);
      answers.set(text, { text: answer, read: JSON.parse(answer) });
      told();
    }

    function stop() {
      running?.terminate();
      running = busy = first = prepared = null;
      clearTimeout(patience);
    }

    function answered({ question, answer, failed }) {
      clearTimeout(patience);
      const { silent, members } = busy;
      busy = null;
      first ??= performance.now() - begun;
      if (failed !== undefined) {
        // Its memory may be in any state.
        stop();
        // Once is enough: whoever needs it is told.
        if (silent) prepared = members;
      }
      // What was prepared may not be what is shown by now.
      if (silent) told();
      else keep(question, answer ?? JSON.stringify({ problems: [`The simulation broke off, perhaps for want of memory (${failed}).`] }));
      next();
    }

    async function next() {
      if (busy || queue.length === 0) return;
      busy = queue.shift();
      const { text, silent, members } = busy;
      try {
        const compiled = await load();
        if (!running) {
          const made = new Worker(worker);
          running = made;
          made.onmessage = ({ data }) => { if (made === running) answered(data); };
          made.postMessage({ module: compiled });
        }
        begun = performance.now();
        running.postMessage({ question: text });
      } catch (error) {
        busy = null;
        if (silent) prepared = members;
        else keep(text, JSON.stringify({ problems: [`This browser cannot run the model: ${error}`] }));
        next();
      }
    }

    // From now on these questions only, the first first.
    function want(questions) {
      const texts = questions.map((one) => asked(one));
      queue = texts.filter(({ text }) => !answers.has(text) && text !== busy?.text);
      clearTimeout(patience);
      if (busy && queue.length && !texts.some(({ machine }) => machine === busy.machine)) {
        const kin = texts.some(({ members }) => members === busy.members);
        if (!kin || first !== null) patience = setTimeout(() => { stop(); next(); }, Math.max(PATIENCE_MS, kin ? first : 0));
      }
      next();
    }

    // Makes ready for this question and others of the same members, once, if there is nothing else to do.
    function prepare(question) {
      const one = { ...asked(question, { prepare: question }), silent: true };
      if (busy || queue.length || prepared === one.members) return;
      prepared = one.members;
      queue = [one];
      next();
    }

    // Nothing is wanted any more, and what runs is given up.
    function end() {
      queue = [];
      stop();
    }

    return { want, prepare, end };
  }

  return {
    seat,
    answer: (question) => answers.get(JSON.stringify(question))?.read,
    // Questions and answers as they were, for tests and for the curious.
    said: () => [...answers].map(([question, { text }]) => [question, text]),
  };
})();
