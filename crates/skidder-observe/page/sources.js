// Sources of inputs that read no files: connections, peers and the like, with what each sends.

import { ask, bytes, cell, clock, count, make, short, span } from './core.js';

const LIMIT = 100;
const COLUMNS = [
  { id: 'name', head: 'source' },
  { id: 'input', head: 'input' },
  { id: 'rate', head: 'events/s', number: true, down: true },
  { id: null, head: 'bytes/s', number: true },
  { id: 'events', head: 'events', number: true, down: true },
  { id: 'bytes', head: 'bytes', number: true, down: true },
  { id: 'behind', head: 'behind', number: true, down: true },
  { id: 'last_activity', head: 'last activity', number: true, down: true },
  { id: 'opened', head: 'open for', number: true },
  { id: null, head: 'last error' },
];

/** Open sources: a card below the files, which is shown if an input has sources. */
export class Sources {
  /** `changed` is called when something else is to be shown. */
  constructor(changed) {
    this.changed = changed;
    this.sort = 'rate';
    this.order = 'desc';
    this.offset = 0;
    this.back = make('button', { class: 'button', type: 'button', onclick: () => this.turn(-1) }, 'Previous');
    this.next = make('button', { class: 'button', type: 'button', onclick: () => this.turn(1) }, 'Next');
    this.where = make('span', { class: 'dim', role: 'status', id: 'sources-where' });
    this.body = make('tbody', { id: 'sources-rows' });
    this.heads = COLUMNS.map((column) => make('th', { scope: 'col', class: column.number ? 'number' : null },
      column.id ? make('button', { type: 'button', 'data-sort': column.id, onclick: () => this.by(column) }, column.head) : column.head));
    this.element = make('section', { id: 'sources', hidden: true, 'aria-label': 'Sources' },
      make('div', { class: 'bar' }, make('strong', {}, 'Open sources'), this.where, this.back, this.next),
      make('div', { class: 'card scroll' }, make('table', { 'aria-label': 'Sources', class: 'stack' }, make('thead', {}, make('tr', {}, this.heads)), this.body)));
    this.tellSort();
  }

  first() {
    this.offset = 0;
  }
  turn(pages) {
    this.offset = Math.max(0, this.offset + pages * LIMIT);
    this.changed();
  }
  by(column) {
    const same = this.sort === column.id;
    this.order = same ? (this.order === 'asc' ? 'desc' : 'asc') : column.down ? 'desc' : 'asc';
    this.sort = column.id;
    this.tellSort();
    this.first();
    this.changed();
  }
  tellSort() {
    COLUMNS.forEach((column, index) => {
      const sorted = column.id === this.sort ? (this.order === 'asc' ? 'ascending' : 'descending') : column.id ? 'none' : null;
      if (sorted) this.heads[index].setAttribute('aria-sort', sorted);
    });
  }

  /** Shows those that match a text; returns how many inputs have files. */
  async look(text) {
    const answer = await ask('sources', { q: text, sort: this.sort, order: this.order, offset: this.offset, limit: LIMIT });
    if (this.offset > 0 && this.offset >= answer.matched) {
      this.offset = Math.max(0, Math.floor((answer.matched - 1) / LIMIT) * LIMIT);
      return this.look(text);
    }
    this.element.hidden = answer.inputs === 0;
    const last = this.offset + answer.sources.length;
    this.where.textContent = answer.matched ? `${count(this.offset + 1)}–${count(last)} of ${count(answer.matched)}` : 'no source';
    this.back.disabled = this.offset === 0;
    this.next.disabled = last >= answer.matched;
    const rows = answer.sources.map(row);
    if (!rows.length) rows.push(make('tr', {}, make('td', { colspan: COLUMNS.length, class: 'empty' }, answer.open ? 'No source matches.' : 'No source is open.')));
    this.body.replaceChildren(...rows);
    return answer.file_inputs;
  }
}

/** How far it is behind: of an object its part that was read; events or messages; the age of the oldest or newest. */
function behind(source) {
  if (source.position !== undefined) return progress(source);
  const parts = [];
  if (source.behind !== null) parts.push(count(source.behind));
  if (source.oldest_ms !== undefined) parts.push(make('span', { title: 'age of the oldest that is not done' }, span(source.oldest_ms)));
  else if (source.behind === null && source.newest_ms !== undefined) {
    const title = `age of the newest; ${count(source.requests ?? 0)} requests`;
    parts.push(make('span', { title }, span(source.newest_ms)));
  }
  if (!parts.length) return '–';
  return make('span', {}, ...parts.flatMap((part, index) => (index ? [', ', part] : [part])));
}

/** How much of an object was read. */
function progress(source) {
  const read = bytes(source.position);
  return source.size === null ? read : make('span', { title: 'bytes that were read, of those of the object' }, `${read} of ${bytes(source.size)}`);
}

function row(source) {
  const number = (head, text) => cell(head, 'number', text);
  const kind = source.input ? make('span', { class: 'dim' }, ` ${source.type}`) : null;
  return make('tr', {},
    cell('source', 'path', source.name),
    cell('input', null, source.input_name, kind),
    number('events/s', source.events_rate === null ? '–' : short(source.events_rate)),
    number('bytes/s', source.bytes_rate === null ? '–' : `${bytes(source.bytes_rate)}/s`),
    number('events', count(source.events)),
    number('bytes', bytes(source.bytes)),
    number('behind', behind(source)),
    number('last activity', source.silent_ms === null ? 'never' : make('span', { title: clock(source.last_activity, true) }, `${span(source.silent_ms)} ago`)),
    number('open for', make('span', { title: clock(source.opened, true) }, span(source.open_ms))),
    cell('last error', 'text', source.last_error || '–'));
}
