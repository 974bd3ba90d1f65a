// Files: what every file is doing, how far it is behind, and why; and the open sources of inputs that read no files.

import { Repeat, ask, bytes, cell, clock, count, link, make, pill, span } from './core.js';
import { Sources } from './sources.js';

const LIMIT = 100;
const COLUMNS = [
  { id: 'path', head: 'path' },
  { id: 'state', head: 'state' },
  { id: 'behind', head: 'behind', number: true, down: true },
  { id: 'behind_ms', head: 'oldest line', number: true, down: true },
  { id: 'rate', head: 'rate', number: true, down: true },
  { id: null, head: 'caught up in', number: true },
  { id: 'deleted_in_ms', head: 'rotation deletes it in', number: true },
  { id: 'size', head: 'size', number: true, down: true },
  { id: 'cursor', head: 'cursor', number: true, down: true },
  { id: 'modified', head: 'modified', number: true, down: true },
  { id: null, head: 'reason' },
];

export class Files {
  name = 'Files';
  id = 'files';
  constructor() {
    this.sort = 'behind';
    this.order = 'desc';
    this.offset = 0;
    this.text = make('input', { type: 'search', class: 'grow', id: 'files-text', placeholder: 'path, input, state or reason', 'aria-label': 'Search files', oninput: () => this.first() });
    this.state = make('select', { 'aria-label': 'State', id: 'files-state', onchange: () => this.first() }, make('option', { value: '' }, 'all states'));
    this.back = make('button', { class: 'button', type: 'button', onclick: () => this.turn(-1) }, 'Previous');
    this.next = make('button', { class: 'button', type: 'button', onclick: () => this.turn(1) }, 'Next');
    this.where = make('span', { class: 'dim', role: 'status', id: 'files-where' });
    this.body = make('tbody', { id: 'files-rows' });
    this.heads = COLUMNS.map((column) => make('th', { scope: 'col', class: column.number ? 'number' : null },
      column.id ? make('button', { type: 'button', 'data-sort': column.id, onclick: () => this.by(column) }, column.head) : column.head));
    this.sources = new Sources(() => this.live.now());
    this.card = make('div', { class: 'card scroll', id: 'files-card' }, make('table', { 'aria-label': 'Files', class: 'stack' }, make('thead', {}, make('tr', {}, this.heads)), this.body));
    this.element = make('div', {},
      make('div', { class: 'bar', role: 'search' }, this.text, this.state, this.where, this.back, this.next),
      this.card, this.sources.element);
    this.field = this.text;
    /** Files of which everything is shown. */
    this.opened = new Set();
    this.live = new Repeat(() => this.look(), () => 2000);
    this.tellSort();
  }

  show() {
    this.live.start();
  }
  hide() {
    this.live.stop();
  }

  /** Shows what a link asks for. */
  open(parameters) {
    this.text.value = parameters.get('q') || '';
    const state = parameters.get('state') || '';
    if (state && ![...this.state.options].some((option) => option.value === state)) this.state.append(make('option', { value: state }, state));
    this.state.value = state;
    const column = COLUMNS.find((one) => one.id === parameters.get('sort'));
    if (column) {
      this.sort = column.id;
      this.order = column.down ? 'desc' : 'asc';
      this.tellSort();
    }
    this.first();
  }

  toggle(file) {
    const name = nameOf(file);
    if (!this.opened.delete(name)) this.opened.add(name);
    this.live.now();
  }

  first() {
    this.offset = 0;
    this.sources.first();
    this.live.now();
  }
  turn(pages) {
    this.offset = Math.max(0, this.offset + pages * LIMIT);
    this.live.now();
  }
  by(column) {
    const same = this.sort === column.id;
    this.order = same ? (this.order === 'asc' ? 'desc' : 'asc') : column.down ? 'desc' : 'asc';
    this.sort = column.id;
    this.tellSort();
    this.first();
  }
  tellSort() {
    COLUMNS.forEach((column, index) => {
      const sorted = column.id === this.sort ? (this.order === 'asc' ? 'ascending' : 'descending') : column.id ? 'none' : null;
      if (sorted) this.heads[index].setAttribute('aria-sort', sorted);
    });
  }

  async look() {
    const wanted = { q: this.text.value.trim(), state: this.state.value, sort: this.sort, order: this.order, offset: this.offset, limit: LIMIT };
    const readers = await this.sources.look(wanted.q);
    for (const part of [this.card, this.state, this.where, this.back, this.next]) part.hidden = readers === 0 && !this.sources.element.hidden;
    this.text.placeholder = this.card.hidden ? 'source, input or error' : this.sources.element.hidden ? 'path, input, state or reason' : 'path, source, input, state or reason';
    const answer = await ask('files', wanted);
    if (this.offset > 0 && this.offset >= answer.matched) {
      this.offset = Math.max(0, Math.floor((answer.matched - 1) / LIMIT) * LIMIT);
      this.live.now();
      return;
    }
    this.showStates(answer.totals.states);
    const last = this.offset + answer.files.length;
    const kept = answer.kept < answer.totals.files ? `, of the first ${count(answer.kept)}` : '';
    this.where.textContent = answer.matched ? `${count(this.offset + 1)}–${count(last)} of ${count(answer.matched)}${kept}` : 'no file';
    this.back.disabled = this.offset === 0;
    this.next.disabled = last >= answer.matched;
    const several = new Set(answer.files.map((file) => file.output)).size > 1;
    const rows = answer.files.flatMap((file) => {
      const isOpen = this.opened.has(nameOf(file));
      const shown = row(file, several, isOpen, () => this.toggle(file));
      return isOpen ? [shown, details(file)] : [shown];
    });
    // A button that has the focus keeps it.
    const focused = this.body.contains(document.activeElement) ? document.activeElement.dataset.file : null;
    if (!rows.length) rows.push(make('tr', {}, make('td', { colspan: COLUMNS.length, class: 'empty' }, 'No file matches.')));
    this.body.replaceChildren(...rows);
    if (focused) [...this.body.querySelectorAll('[data-file]')].find((button) => button.dataset.file === focused)?.focus();
  }

  showStates(states) {
    const options = Object.entries(states).map(([state, number]) => [state, `${state} (${count(number)})`]);
    if (this.state.value && !states[this.state.value]) options.push([this.state.value, `${this.state.value} (0)`]);
    options.unshift(['', 'all states']);
    const told = JSON.stringify(options);
    if (told === this.told || document.activeElement === this.state) return;
    this.told = told;
    const chosen = this.state.value;
    this.state.replaceChildren(...options.map(([value, text]) => make('option', { value }, text)));
    this.state.value = chosen;
  }
}

const nameOf = (file) => `${file.output || ''} ${file.path}`;

function row(file, several, isOpen, toggle) {
  const number = (head, text) => cell(head, 'number', text);
  const path = cell('path', 'path', make('button', { type: 'button', class: 'more', 'aria-expanded': String(isOpen), 'data-file': nameOf(file), onclick: toggle }, file.path),
    several && file.output ? make('span', { class: 'dim' }, ` → ${file.output}`) : null,
    file.compressed ? make('span', { class: 'dim' }, ' compressed') : null);
  return make('tr', {}, path,
    cell('state', null, pill(file.state)),
    number('behind', bytes(file.behind)),
    number('oldest line', file.behind_ms ? span(file.behind_ms) : '–'),
    number('rate', file.rate ? `${bytes(file.rate)}/s` : '–'),
    number('caught up in', file.catch_up_ms ? span(file.catch_up_ms) : '–'),
    number('rotation deletes it in', file.deleted_in_ms === null ? '–' : span(file.deleted_in_ms)),
    number('size', bytes(file.size)),
    number('cursor', count(file.cursor)),
    number('modified', file.modified ? clock(file.modified, true) : '–'),
    cell('reason', 'text', file.reason || '', file.error && !(file.reason || '').includes(file.error.text)
      ? make('span', { class: 'dim' }, ` last error, ${clock(file.error.at, true)}: ${file.error.text}`) : null));
}

/** Everything about a file, and where to go from it. */
function details(file) {
  const rows = [['input', file.input], ['output', file.output], ['state', file.reason ? `${file.state}: ${file.reason}` : file.state]];
  rows.push(['last error', file.error ? `${clock(file.error.at, true)}: ${file.error.text}` : 'none']);
  if (file.ledger) {
    const { ledger } = file;
    const parts = [['delivered', ledger.delivered], ['dropped', ledger.dropped], ['dead-lettered', ledger.dead_lettered], ['in the disk queue', ledger.stored], ['in flight', ledger.in_flight]];
    const reasons = Object.entries(ledger.reasons).map(([name, number]) => `${name} ${count(number)}`).join(', ');
    rows.push(['ledger', `read ${count(ledger.read)} lines, ${bytes(ledger.read_bytes)} = ${parts.filter(([, number]) => number).map(([name, number]) => `${name} ${count(number)}`).join(' + ') || '0'}${reasons ? ` (${reasons})` : ''}`]);
  } else rows.push(['ledger', 'nothing was read since the start']);
  rows.push(['read', `${count(file.read)} bytes of text, generation ${file.generation}`], ['key', file.key]);
  return make('tr', { class: 'open' }, make('td', { colspan: COLUMNS.length },
    make('dl', {}, rows.filter(([, text]) => text).flatMap(([name, text]) => [make('dt', {}, name), make('dd', {}, text)])),
    make('p', {}, link('tail', { source: file.path }, 'Watch its events'), ' · ', link('search', { file: file.path }, 'Search in it'), ' · ',
      link('letters', { source: file.path }, 'Its dead letters'))));
}
