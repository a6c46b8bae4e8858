// Runs before the first paint, so that a chosen theme does not flash.
try {
  const theme = localStorage.getItem("mneme-theme");
  if (theme === "dark" || theme === "light") document.documentElement.dataset.theme = theme;
} catch {
  // Storage is forbidden: the system's theme it is.
}
