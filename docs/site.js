// For keyboards and screen readers: a wide table scrolls with the arrow keys, and the frame of a copy button is no landmark.
new MutationObserver(() => {
  for (const table of document.querySelectorAll(".md-typeset__scrollwrap")) table.tabIndex = 0;
  document.querySelector(".md-search[role=dialog]")?.setAttribute("aria-label", "Search");
  for (const frame of document.querySelectorAll(".md-code__nav")) frame.role = "presentation";
}).observe(document.documentElement, { childList: true, subtree: true });
