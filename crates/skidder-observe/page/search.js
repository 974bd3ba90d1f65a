// Search: through the files themselves, also those that were rotated and compressed; the newest line first.

import { Refused, bytes, clock, count, link, lock, make, marked, request, span } from './core.js';

/** Spans of time to choose from, in minutes. */
const SPANS = [['', 'any time'], ['15', 'last 15 min'], ['60', 'last hour'], ['1440', 'last 24 h'], ['own', 'from … to']];
/** Lines that are shown at most: as many as the server gives. */
const SHOWN_MAX = 500;

export class Search {
  name = 'Search';
  id = 'search';
  constructor() {
    this.text = make('input', { type: 'search', class: 'grow', id: 'search-text', placeholder: 'words, "some words", -not; field:value in lines of JSON', 'aria-label': 'Search for', autocomplete: 'off' });
    this.file = make('input', { type: 'search', id: 'search-file', placeholder: 'part of the path', 'aria-label': 'File', autocomplete: 'off' });
    this.span = make('select', { id: 'search-span', 'aria-label': 'Time', onchange: () => this.tellSpan() }, SPANS.map(([value, text]) => make('option', { value }, text)));
    this.from = make('input', { type: 'datetime-local', id: 'search-from', step: '1' });
    this.to = make('input', { type: 'datetime-local', id: 'search-to', step: '1' });
    this.own = [make('label', { class: 'field' }, 'from', this.from), make('label', { class: 'field' }, 'to', this.to)];
    this.button = make('button', { type: 'submit', class: 'button main', id: 'search-go' }, 'Search');
    this.where = make('span', { class: 'dim', role: 'status', id: 'search-where' }, 'All files that match an input, rotated and compressed ones too; the newest line first.');
    this.log = make('div', { class: 'log found', id: 'search-log', tabindex: '0', role: 'region', 'aria-label': 'Lines found' });
    const form = make('form', { class: 'bar', role: 'search', onsubmit: (event) => this.submit(event) },
      this.text, this.file, this.span, ...this.own, this.button);
    this.element = make('div', {}, form, make('div', { class: 'totals' }, this.where), this.log);
    this.field = this.text;
    this.running = null;
    this.tellSpan();
  }
  show() {}
  hide() {}

  /** Shows what a link asks for. */
  open(parameters) {
    this.file.value = parameters.get('file') || '';
    this.text.value = parameters.get('q') || '';
  }

  tellSpan() {
    for (const field of this.own) field.hidden = this.span.value !== 'own';
  }

  submit(event) {
    event.preventDefault();
    if (this.running) this.running.abort();
    else this.run();
  }

  times() {
    const time = (input) => (input.value ? new Date(input.value).toISOString() : '');
    if (this.span.value === 'own') return { from: time(this.from), to: time(this.to) };
    const minutes = Number(this.span.value);
    return { from: minutes ? new Date(Date.now() - minutes * 60_000).toISOString() : '' };
  }

  async run() {
    const asked = { q: this.text.value.trim(), file: this.file.value.trim(), ...this.times() };
    this.words = asked.q.split(/\s+/).filter((word) => !word.startsWith('-')).map((word) => word.replace(/^[\w@.-]+:/, '').replace(/"/g, ''));
    this.log.replaceChildren();
    /** The lines that are shown, the newest first, as their elements stand. */
    this.found = [];
    this.where.textContent = 'looking …';
    this.button.textContent = 'Stop';
    this.running = new AbortController();
    this.ended = false;
    try {
      const answer = await request('search', asked, { signal: this.running.signal });
      await this.read(answer.body.getReader());
      if (!this.ended) throw new Error('the answer was cut off; search again');
    } catch (error) {
      if (error instanceof Refused && error.status === 401) lock(true);
      this.where.textContent = error.name === 'AbortError' ? `stopped; ${this.log.querySelectorAll('details').length} lines found` : error.message;
    }
    this.running = null;
    this.button.textContent = 'Search';
  }

  async read(reader) {
    const decoder = new TextDecoder();
    let rest = '';
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const lines = (rest + decoder.decode(value, { stream: true })).split('\n');
      rest = lines.pop();
      for (const line of lines) {
        const record = JSON.parse(line);
        if (record.match) this.insert(record.match);
        else if (record.problem) this.log.append(make('div', { class: 'gap' }, `${record.problem.path}: ${record.problem.message}`));
        else if (record.progress) this.where.textContent = `${told(record.progress)} … ${record.progress.path}`;
        else if (record.end) this.end(record.end);
      }
    }
  }

  /** Puts a line where it belongs: they come file by file. */
  insert(match) {
    let [low, high] = [0, this.found.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (newer(match, this.found[middle].match)) high = middle;
      else low = middle + 1;
    }
    if (low >= SHOWN_MAX) return;
    const element = this.row(match);
    this.log.insertBefore(element, this.found[low] ? this.found[low].element : this.log.querySelector('.gap'));
    this.found.splice(low, 0, { match, element });
    if (this.found.length > SHOWN_MAX) this.found.pop().element.remove();
  }

  end(end) {
    this.ended = true;
    if (end.message) {
      this.where.textContent = end.message;
      return;
    }
    const why = {
      all: '', enough: '; there are older ones: these are the newest, and the most that is shown', bytes: '; ended at the bound of bytes, search in fewer files',
      time: '; ended after 30 s, search in fewer files',
    }[end.reason];
    const skipped = end.skipped ? `; ${count(end.skipped)} files were changed last before that time` : '';
    this.where.textContent = `${told(end)} in ${span(end.took_ms)}${skipped}${why}`;
  }

  row(match) {
    const { path, offset, line, bytes: length, time_ms: time, before, after } = match;
    const cut = length > line.length + 4 ? ` … (${bytes(length)})` : '';
    const details = make('details', {},
      make('summary', {},
        make('span', { class: 'time' }, time === null ? '' : clock(new Date(time).toISOString(), true)),
        make('span', { class: 'source', title: `${path}, byte ${offset}` }, path.split('/').pop()),
        make('span', { class: 'message' }, ...marked(line.length > 2000 ? `${line.slice(0, 2000)}…` : line, this.words), cut)));
    details.addEventListener('toggle', () => {
      if (details.childElementCount >= 2) return;
      const context = (text) => (text === null ? null : make('pre', { class: 'context' }, text));
      details.append(
        make('p', { class: 'dim' }, `${path}, byte ${count(offset)} · `, link('files', { q: path }, 'the file'), ' · ', link('tail', { source: path }, 'watch it')),
        ...[context(before), make('pre', {}, pretty(line)), context(after)].filter(Boolean));
    }, { once: true });
    return details;
  }
}

/** Whether a line is newer: by its time, and in its file by its place. */
function newer(one, other) {
  if (one.rank !== other.rank) return one.rank > other.rank;
  if (one.path === other.path) return one.offset > other.offset;
  return false;
}

const told = ({ found, done, files, bytes: size }) => `${found === 1 ? '1 line' : `${count(found)} lines`} found in ${count(done)} of ${count(files)} files, ${bytes(size)}`;

function pretty(line) {
  try {
    return JSON.stringify(JSON.parse(line), null, 2);
  } catch {
    return line;
  }
}
