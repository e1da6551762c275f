// What this browser remembers of what it has checked: in its local storage, for this address. None of it is a secret.
//   keeve.logs     by origin: the keys of a log, and the newest checkpoint that was seen of it
//   keeve.chains   by session: its newest record that was seen, and whether all before it were
// The one rule: what cannot be read is not there. A browser that keeps nothing checks each page for itself.

const MOST = 500; // sessions that are remembered

function read(name) {
  try {
    return JSON.parse(localStorage.getItem(name)) ?? {};
  } catch {
    return {};
  }
}

function write(name, key, value, most = Infinity) {
  const all = read(name);
  delete all[key]; // so that the newest stands last
  all[key] = value;
  for (const old of Object.keys(all).slice(0, -most)) delete all[old];
  try {
    localStorage.setItem(name, JSON.stringify(all));
  } catch {
    // it is full, or not allowed
  }
}

const of = (name, key) => (Object.hasOwn(read(name), key) ? read(name)[key] : null);

export const log = (origin) => of("keeve.logs", origin);
export const logs = () => Object.keys(read("keeve.logs")).length;
export const keepLog = (origin, value) => write("keeve.logs", origin, value);
export const chain = (session) => of("keeve.chains", session);
export const keepChain = (session, value) => write("keeve.chains", session, value, MOST);
