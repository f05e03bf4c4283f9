// Settings of the page that the browser keeps.

// stored returns a setting, or null if the browser has none or may not store any.
export function stored(key) {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

// store keeps a setting, if necessary only until the page is loaded again.
export function store(key, value) {
  try {
    localStorage.setItem(key, value);
  } catch { /* the browser may not store any */ }
}
