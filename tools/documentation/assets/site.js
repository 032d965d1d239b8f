// The search is a dialog, which a screen reader calls by its label.
document.querySelector(".md-search")?.setAttribute("aria-label", "Search");
