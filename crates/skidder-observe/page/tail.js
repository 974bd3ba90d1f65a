// Tail: events as they pass, filtered on the server.

import { Repeat, ask, clock, count, make, marked } from './core.js';

/** Events that stay to be scrolled back to. */
const KEPT = 2000;
const LEVELS = ['', 'trace', 'debug', 'info', 'notice', 'warn', 'warning', 'error', 'critical', 'fatal'];

export class Tail {
  name = 'Tail';
  id = 'tail';
  constructor() {
    this.viewer = Array.from(crypto.getRandomValues(new Uint32Array(3)), (part) => part.toString(36)).join('');
    this.last = 0;
    this.missed = 0;
    this.shown = 0;
    this.paused = false;
    const changed = () => {
      clearTimeout(this.wait);
      this.wait = setTimeout(() => this.filter(), 250);
    };
    this.text = make('input', { type: 'search', class: 'grow', id: 'tail-text', placeholder: 'words, "some words", field:value, field:*, -not', 'aria-label': 'Filter events', autocomplete: 'off', oninput: changed });
    this.source = make('input', { type: 'search', id: 'tail-source', placeholder: 'source path', 'aria-label': 'Source', autocomplete: 'off', oninput: changed });
    this.level = make('select', { 'aria-label': 'Level', id: 'tail-level', onchange: changed }, LEVELS.map((level) => make('option', { value: level }, level || 'any log.level')));
    this.button = make('button', { type: 'button', class: 'button main', id: 'tail-pause', 'aria-pressed': 'false', onclick: () => this.pause() }, 'Pause');
    this.clear = make('button', { type: 'button', class: 'button', onclick: () => this.empty() }, 'Clear');
    this.where = make('span', { class: 'dim', role: 'status', id: 'tail-where' });
    this.log = make('div', { class: 'log', id: 'tail-log', tabindex: '0', role: 'log', 'aria-label': 'Events', 'aria-live': 'off' });
    this.element = make('div', {},
      make('div', { class: 'bar', role: 'search' }, this.text, this.source, this.level, this.button, this.clear),
      make('div', { class: 'totals' }, this.where),
      this.log);
    this.field = this.text;
    this.live = new Repeat(() => this.look(), () => 400, true);
  }

  show() {
    if (!this.paused) this.live.start();
  }
  hide() {
    this.live.stop();
  }
  /** Shows what a link asks for. */
  open(parameters) {
    this.text.value = parameters.get('q') || '';
    this.source.value = parameters.get('source') || '';
    this.filter();
  }
  key(event) {
    if (event.key === 'p') this.pause();
  }

  pause() {
    this.paused = !this.paused;
    this.button.textContent = this.paused ? 'Go on' : 'Pause';
    this.button.setAttribute('aria-pressed', String(this.paused));
    if (this.paused) this.live.stop();
    else this.live.start();
    this.tell();
  }

  filter() {
    this.empty();
    this.last = 0;
    if (this.paused) this.pause();
    else if (this.live.on) this.live.now();
  }

  empty() {
    this.missed = 0;
    this.shown = 0;
    this.log.replaceChildren();
    this.tell();
  }

  async look() {
    const asked = { viewer: this.viewer, q: this.text.value.trim(), source: this.source.value.trim(), level: this.level.value };
    const answer = await ask('tail', { ...asked, after: this.last });
    // The filter was changed while the answer came.
    if (asked.q !== this.text.value.trim() || asked.source !== this.source.value.trim() || asked.level !== this.level.value) return;
    // A server that was started anew counts from the beginning.
    const fresh = answer.last < this.last;
    this.last = answer.last;
    const atEnd = this.log.scrollHeight - this.log.scrollTop - this.log.clientHeight < 40;
    const words = asked.q.split(/\s+/).filter((word) => !word.startsWith('-')).map((word) => word.replace(/^[\w@.-]+:/, '').replace(/"/g, ''));
    const rows = answer.events.map((event) => row(event, words));
    if (answer.missed && !fresh) {
      this.missed += answer.missed;
      rows.unshift(make('div', { class: 'gap' }, `${count(answer.missed)} events not shown: they came faster than they can be looked at`));
    }
    this.shown += answer.events.length;
    this.log.append(...rows);
    while (this.log.childElementCount > KEPT) this.log.firstElementChild.remove();
    if (atEnd) this.log.scrollTop = this.log.scrollHeight;
    this.tell();
  }

  tell() {
    const missed = this.missed ? `, ${count(this.missed)} events not shown` : '';
    const state = this.paused ? 'paused' : this.shown ? 'watching' : 'waiting for events';
    this.where.textContent = `${state}: ${count(this.shown)} shown${missed}`;
  }
}

function row({ source, output, offset, event }, words) {
  const level = String((event.log && event.log.level) || event['log.level'] || '');
  const message = typeof event.message === 'string' ? event.message : JSON.stringify(event);
  const details = make('details', {},
    make('summary', {},
      make('span', { class: 'time' }, clock(event['@timestamp'])),
      make('span', { class: `level level-${level.toLowerCase()}` }, level),
      make('span', { class: 'source', title: `${source}:${offset}${output ? ` → ${output}` : ''}` }, source.split('/').pop()),
      make('span', { class: 'message' }, ...marked(message.length > 2000 ? `${message.slice(0, 2000)}…` : message, words))));
  details.addEventListener('toggle', () => {
    if (details.childElementCount < 2) details.append(make('pre', {}, `${source}, byte ${count(offset)}${output ? `, to ${output}` : ''}\n${JSON.stringify(event, null, 2)}`));
  }, { once: true });
  return details;
}
