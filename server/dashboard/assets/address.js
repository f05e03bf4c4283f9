// The address of the page after "#": its path and its parameters.

// path returns the parts of the address before "?".
export const path = () => location.hash.replace(/^#\/?/, "").split("?")[0].split("/");

const query = () => location.hash.slice(location.hash.indexOf("?") + 1 || location.hash.length);

// parameter returns the value of a parameter, or fallback if the address has none or if it
// is not one of the known values.
export function parameter(key, fallback = "", known = null) {
  const value = new URLSearchParams(query()).get(key);
  return value === null || (known && !known.includes(value)) ? fallback : value;
}

export const lastTime = Date.UTC(9999, 11, 31); // that an address can have

// timeParameter returns the milliseconds of a time, or null if the address has none.
export function timeParameter(key) {
  const at = Date.parse(parameter(key));
  return at >= 0 && at <= lastTime ? at : null;
}

export const timeText = (at) => (at === null ? "" : new Date(Math.round(at)).toISOString());

const writeDelay = 250; // milliseconds: browsers limit how often the address changes

// delayedParameters returns a function that writes parameters to the address a moment after
// its last call, and close, after which it writes nothing.
export function delayedParameters() {
  let timer;
  const write = (values) => { clearTimeout(timer); timer = setTimeout(() => setParameters(values), writeDelay); };
  return { write, close: () => clearTimeout(timer) };
}

// setParameters writes parameters to the address, so that a link shows the same view, and
// removes empty ones. It does not draw the page again.
export function setParameters(values) {
  const pairs = new URLSearchParams(query());
  for (const [key, value] of Object.entries(values)) {
    if (value === "" || value === false || value === null) pairs.delete(key);
    else pairs.set(key, value);
  }
  const before = location.hash.split("?")[0] || "#/";
  history.replaceState(null, "", pairs.size ? `${before}?${pairs}` : before);
}

// pageLink returns the link to a page.
export const pageLink = (...parts) => "#/" + parts.map(encodeURIComponent).join("/");
