"use strict";
// Groups of radio buttons above a chart: real inputs, so that arrow keys, focus and screen readers work by themselves.
const controls = (() => {
  let groups = 0;

  function element(tag, attributes = {}, ...children) {
    const made = document.createElement(tag);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }

  // `spec` is { name, label, options: [[value, text], ...] }; more than eight options become a select. Returns the
  // element and `sync`, which shows what `state` says now.
  function build(spec, state, changed) {
    groups += 1;
    const name = `${spec.name}-${groups}`;
    if (spec.options.length > 8) return select(spec, name, state, changed);
    const set = element("fieldset", { class: "choice" }, element("legend", {}, spec.label));
    const row = element("div", { class: "segments" });
    const inputs = [];
    for (const [value, text] of spec.options) {
      const input = element("input", { type: "radio", name, id: `${name}-${value}`, value });
      input.checked = state[spec.name] === value;
      input.addEventListener("change", () => {
        state[spec.name] = value;
        changed();
      });
      inputs.push(input);
      row.append(input, element("label", { for: input.id }, text));
    }
    set.append(row);
    return { made: set, sync: () => inputs.forEach((input) => { input.checked = input.value === state[spec.name]; }) };
  }

  function select(spec, name, state, changed) {
    const chosen = element("select", { id: name });
    for (const [value, text] of spec.options) {
      const option = element("option", { value }, text);
      option.selected = state[spec.name] === value;
      chosen.append(option);
    }
    chosen.addEventListener("change", () => {
      state[spec.name] = chosen.value;
      changed();
    });
    return {
      made: element("div", { class: "choice" }, element("label", { for: name }, spec.label), chosen),
      sync: () => { chosen.value = state[spec.name]; },
    };
  }

  return { build, select: (spec, state, changed) => { groups += 1; return select(spec, `${spec.name}-${groups}`, state, changed); }, element };
})();
