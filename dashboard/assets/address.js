// The address of the page after "#": its path, and what it searches, sorts and shows.

// path is the parts of the address before "?".
export const path = () => location.hash.replace(/^#\/?/, "").split("?")[0].split("/");

const text = () => location.hash.slice(location.hash.indexOf("?") + 1 || location.hash.length);

// wanted returns a value of the address, or another one if it is not there or not one of
// the known.
export function wanted(key, otherwise = "", known = null) {
  const value = new URLSearchParams(text()).get(key);
  return value === null || (known && !known.includes(value)) ? otherwise : value;
}

// keep puts values into the address, so that it can be sent to another person. Empty ones
// are removed. The page is not drawn again.
export function keep(values) {
  const pairs = new URLSearchParams(text());
  for (const [key, value] of Object.entries(values)) {
    if (value === "" || value === false || value === null) pairs.delete(key);
    else pairs.set(key, value);
  }
  const before = location.hash.split("?")[0] || "#/";
  history.replaceState(null, "", pairs.size ? `${before}?${pairs}` : before);
}

// linked makes the link of a page with values.
export const linked = (...parts) => "#/" + parts.map(encodeURIComponent).join("/");
