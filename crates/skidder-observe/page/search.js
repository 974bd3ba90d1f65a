// Search: through the files themselves, also those that were rotated and compressed.

import { bytes, count, make, marked, span } from './core.js';

export class Search {
  name = 'Search';
  id = 'search';
  constructor() {
    this.text = make('input', { type: 'search', class: 'grow', id: 'search-text', placeholder: 'words, "some words", -not; field:value in lines of JSON', 'aria-label': 'Search for', autocomplete: 'off' });
    this.file = make('input', { type: 'search', id: 'search-file', placeholder: 'part of the path', 'aria-label': 'File', autocomplete: 'off' });
    this.from = make('input', { type: 'datetime-local', id: 'search-from', step: '1' });
    this.to = make('input', { type: 'datetime-local', id: 'search-to', step: '1' });
    this.button = make('button', { type: 'submit', class: 'button main', id: 'search-go' }, 'Search');
    this.where = make('span', { class: 'dim', role: 'status', id: 'search-where' }, 'All files that match an input, the newest first, rotated and compressed ones too.');
    this.log = make('div', { class: 'log found', id: 'search-log', tabindex: '0', role: 'region', 'aria-label': 'Lines found' });
    const form = make('form', { class: 'bar', role: 'search', onsubmit: (event) => this.submit(event) },
      this.text, this.file, make('label', { class: 'field' }, 'from', this.from), make('label', { class: 'field' }, 'to', this.to), this.button);
    this.element = make('div', {}, form, make('div', { class: 'totals' }, this.where), this.log);
    this.field = this.text;
    this.running = null;
  }
  show() {}
  hide() {}

  submit(event) {
    event.preventDefault();
    if (this.running) this.running.abort();
    else this.run();
  }

  async run() {
    const time = (input) => (input.value ? new Date(input.value).toISOString() : '');
    const asked = { q: this.text.value.trim(), file: this.file.value.trim(), from: time(this.from), to: time(this.to) };
    const query = new URLSearchParams(Object.entries(asked).filter(([, value]) => value));
    this.words = asked.q.split(/\s+/).filter((word) => !word.startsWith('-')).map((word) => word.replace(/^[\w@.-]+:/, '').replace(/"/g, ''));
    this.log.replaceChildren();
    this.where.textContent = 'looking …';
    this.button.textContent = 'Stop';
    this.running = new AbortController();
    this.ended = false;
    try {
      const answer = await fetch(`search?${query}`, { signal: this.running.signal, cache: 'no-store' });
      if (!answer.ok) throw new Error((await answer.json()).error);
      await this.read(answer.body.getReader());
      if (!this.ended) throw new Error('the answer was cut off; search again');
    } catch (error) {
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
      const rows = [];
      for (const line of lines) {
        const record = JSON.parse(line);
        if (record.match) rows.push(this.row(record.match));
        else if (record.problem) rows.push(make('div', { class: 'gap' }, `${record.problem.path}: ${record.problem.message}`));
        else if (record.progress) this.where.textContent = `${told(record.progress)} … ${record.progress.path}`;
        else if (record.end) this.end(record.end);
      }
      this.log.append(...rows);
    }
  }

  end(end) {
    this.ended = true;
    if (end.message) {
      this.where.textContent = end.message;
      return;
    }
    const why = {
      all: '', enough: '; there may be more: this is the most that is shown', bytes: '; ended at the bound of bytes, search in fewer files',
      time: '; ended after 30 s, search in fewer files',
    }[end.reason];
    const skipped = end.skipped ? `; ${count(end.skipped)} files were changed last before that time` : '';
    this.where.textContent = `${told(end)} in ${span(end.took_ms)}${skipped}${why}`;
  }

  row({ path, offset, line, bytes: length }) {
    const cut = length > line.length + 4 ? ` … (${bytes(length)})` : '';
    const details = make('details', {},
      make('summary', {},
        make('span', { class: 'source', title: path }, path.split('/').pop()),
        make('span', { class: 'time' }, `byte ${count(offset)}`),
        make('span', {}, ...marked(line.length > 2000 ? `${line.slice(0, 2000)}…` : line, this.words), cut)));
    details.addEventListener('toggle', () => {
      if (details.childElementCount < 2) details.append(make('pre', {}, `${path}, byte ${count(offset)}\n${pretty(line)}`));
    }, { once: true });
    return details;
  }
}

const told = ({ found, done, files, bytes: size }) => `${found === 1 ? '1 line' : `${count(found)} lines`} found in ${count(done)} of ${count(files)} files, ${bytes(size)}`;

function pretty(line) {
  try {
    return JSON.stringify(JSON.parse(line), null, 2);
  } catch {
    return line;
  }
}
