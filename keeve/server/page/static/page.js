// What every page does: it takes the token out of a link, and lets some keys lead to their places.
// The one rule: whatever comes from elsewhere becomes text, never a part of the document.

async function enter(token) {
  history.replaceState(null, "", location.pathname + location.search);
  const status = document.getElementById("entering");
  if (status) status.textContent = "Logging in …";
  const next = document.querySelector("form[action='/login'] [name='next']")?.value ?? location.pathname + location.search;
  const answer = await fetch("/login", { method: "POST", body: new URLSearchParams({ token, next: "/" }) });
  if (answer.ok) location.replace(next);
  else if (status) status.textContent = "The token of this link is not known here. Give another one.";
}

function look() {
  const link = /^#token=([^&]+)$/.exec(location.hash);
  if (link) enter(link[1]);
}

addEventListener("hashchange", look);
look();

// "/" leads to the search, "n" to what is to be written, arrows through the past; not while something is written.
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (event.target.closest("input, textarea, select, [contenteditable]")) return;
  const place = [...document.querySelectorAll("[data-key]")].find((each) => each.dataset.key === event.key);
  if (!place) return;
  event.preventDefault();
  if (place.matches("a, button")) place.click();
  else place.focus();
});
