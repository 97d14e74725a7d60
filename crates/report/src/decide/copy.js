"use strict";
// Copies the command that repeats an answer. The button is hidden where there are no scripts.
for (const button of document.querySelectorAll("button.copy")) {
  const command = button.parentElement.querySelector(".again");
  button.hidden = false;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(command.textContent);
    } catch {
      // Without the right to use the clipboard the command is selected, so that a key copies it.
      getSelection().selectAllChildren(command);
      button.textContent = "Selected";
      return;
    }
    button.textContent = "Copied";
  });
}
