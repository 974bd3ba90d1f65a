// What all views share: making elements, asking the server, writing numbers.

/** An element: `make('td', {class: 'number', onclick: f}, 'text', child)`. */
export function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith('on')) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? '' : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** A request that was answered with an error. `status` is 0 if nobody answered. */
export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

const KEY = 'skidder-key';
let lastAnswer = new Date();

/** The key of the session; a cookie that the page cannot read is the other half. */
function sessionKey() {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

/** Shows a token, or the session that there is, and gets another one. */
async function begin(headers) {
  const answer = await request('session', {}, { headers });
  const { key } = await answer.json();
  try {
    if (key) localStorage.setItem(KEY, key);
  } catch {
    // Without storage the page has to be opened with its token again.
  }
}

/** Opens what shows events with a token. */
export const unlock = (token) => begin({ authorization: `Bearer ${token.trim()}` });

/** Takes the token out of the address, where it is in no log and no history, or goes on with a session. */
export async function enter() {
  const token = /^#token=(\w+)$/.exec(location.hash);
  if (token) history.replaceState(null, '', location.pathname);
  try {
    if (token) await unlock(token[1]);
    else if (sessionKey()) await begin({});
  } catch {
    // The views that need it say so.
  }
}

/** Asks for a part of the page; an error says what the server said. */
export async function request(part, parameters = {}, options = {}) {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(parameters)) {
    if (value !== undefined && value !== null && value !== '') query.set(key, value);
  }
  const text = query.toString();
  const key = sessionKey();
  const headers = { ...(key ? { 'x-skidder-key': key } : {}), ...options.headers };
  let answer;
  try {
    answer = await fetch(text ? `${part}?${text}` : part, { cache: 'no-store', ...options, headers });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new Refused(0, `no answer since ${clock(lastAnswer.toISOString(), true)}: skidder does not run, or its address cannot be reached from here`);
  }
  lastAnswer = new Date();
  if (!answer.ok) {
    const body = await answer.json().catch(() => ({}));
    throw new Refused(answer.status, body.error || `the server answered ${answer.status}`);
  }
  return answer;
}

/** The same as JSON. */
export const ask = async (part, parameters, options) => (await request(part, parameters, options)).json();

/** A link to a view, with what it is to show. */
export function link(view, parameters, ...children) {
  const query = new URLSearchParams(parameters).toString();
  return make('a', { href: `#${view}${query ? `?${query}` : ''}` }, ...children);
}

/** A table whose rows stand as blocks on a narrow screen; `heads` are texts, or `{text, number}`. */
export function table(label, heads, body, kind) {
  const cells = heads.map((head) => make('th', { scope: 'col', class: head.number ? 'number' : null }, head.text || head));
  return make('table', { class: kind ? `stack ${kind}` : 'stack', 'aria-label': label }, make('thead', {}, make('tr', {}, cells)), body);
}

/** A cell of such a table. */
export const cell = (head, kind, ...children) => make('td', { class: kind, 'data-head': head }, ...children);

/** Calls `work` again and again, `pause()` milliseconds after it is done, as long as its view is shown. */
export class Repeat {
  /** `needsToken`: it shows events. */
  constructor(work, pause, needsToken = false) {
    this.needsToken = needsToken;
    this.work = work;
    this.pause = pause;
    this.timer = null;
    this.on = false;
    this.busy = false;
    this.again = false;
  }
  start() {
    this.on = true;
    this.now();
  }
  stop() {
    this.on = false;
    clearTimeout(this.timer);
  }
  async now() {
    clearTimeout(this.timer);
    if (this.busy) {
      this.again = true;
      return;
    }
    this.busy = true;
    try {
      await this.work();
      alarm(this, null);
      if (this.needsToken) lock(false);
    } catch (error) {
      alarm(this, error.status === 401 ? null : error.message);
      if (error.status === 401) lock(true);
    }
    this.busy = false;
    if (this.again) {
      this.again = false;
      this.now();
    } else if (this.on) {
      this.timer = setTimeout(() => this.now(), document.hidden ? 5000 : this.pause());
    }
  }
}

/** Says that a view shows events, and how to get to see them. */
export function lock(is) {
  document.getElementById('lock').hidden = !is;
}

const alarms = new Map();

/** Tells of trouble, or that it is over. */
function alarm(who, text) {
  if (text) alarms.set(who, text);
  else alarms.delete(who);
  const place = document.getElementById('alarm');
  const texts = [...new Set(alarms.values())];
  place.hidden = texts.length === 0;
  place.textContent = texts.join(' · ');
}

const whole = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });

/** 1,234,567 */
export const count = (number) => (number === null || number === undefined ? '–' : whole.format(number));

/** 12.3k */
export function short(number) {
  for (const [unit, size] of [['G', 1e9], ['M', 1e6], ['k', 1e3]]) {
    if (number >= size) return `${digits(number / size)}${unit}`;
  }
  return number >= 10 || Number.isInteger(number) ? whole.format(number) : number.toFixed(1);
}

/** 12.3 MiB */
export function bytes(number) {
  if (number === null || number === undefined) return '–';
  for (const [unit, size] of [['TiB', 2 ** 40], ['GiB', 2 ** 30], ['MiB', 2 ** 20], ['KiB', 1024]]) {
    if (number >= size) return `${digits(number / size)} ${unit}`;
  }
  return `${whole.format(number)} B`;
}

function digits(number) {
  return String(Number(number >= 100 ? number.toFixed(0) : number >= 10 ? number.toFixed(1) : number.toFixed(2)));
}

/** Milliseconds as 3 d 4 h, 12 min 3 s, 1.2 s, 15 ms. */
export function span(ms) {
  if (ms === null || ms === undefined) return '–';
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.floor(seconds % 60)} s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** A time of RFC 3339 as the reader's clock shows it: with milliseconds, or with the date of another day. */
export function clock(text, orDate = false) {
  const time = new Date(text);
  if (Number.isNaN(time.getTime())) return text || '–';
  const two = (number) => String(number).padStart(2, '0');
  const hours = `${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}`;
  if (!orDate) return `${hours}.${String(time.getMilliseconds()).padStart(3, '0')}`;
  if (time.toDateString() === new Date().toDateString()) return hours;
  return `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())} ${hours}`;
}

/** A pill with the colour of its state. */
export function pill(state) {
  const kind = {
    reading: 'good', delivering: 'good', finished: 'good', idle: '', closed: '', waiting: 'warn', held: 'warn',
    ignored: 'warn', unreadable: 'bad', gone: 'warn', blocked: 'bad', failing: 'bad',
    ended: 'bad',
  }[state];
  return make('span', { class: `pill ${kind || ''}` }, state);
}

/** The text with every place marked where one of the words stands. */
export function marked(text, words) {
  const wanted = words.filter((word) => word.length > 0).map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  if (wanted.length === 0) return [text];
  const parts = text.split(new RegExp(`(${wanted.join('|')})`, 'gi'));
  return parts.map((part, index) => (index % 2 ? make('mark', {}, part) : part));
}
