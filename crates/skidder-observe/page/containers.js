// Containers: what autodiscover has seen, which template or hint matched and why, and the inputs that came of it.

import { Repeat, ask, cell, count, make } from './core.js';

const LIMIT = 100;
const HEADS = ['container or pod', 'provider', 'read', { text: 'inputs', number: true }, 'why'];

export class Containers {
  name = 'Containers';
  id = 'containers';
  constructor() {
    this.offset = 0;
    this.told = '';
    this.text = make('input', { type: 'search', class: 'grow', id: 'containers-text', placeholder: 'name, id, reason or a part of the configuration', 'aria-label': 'Search containers', oninput: () => this.first() });
    this.state = make('select', { 'aria-label': 'State', id: 'containers-state', onchange: () => this.first() }, make('option', { value: '' }, 'all'));
    this.back = make('button', { class: 'button', type: 'button', onclick: () => this.turn(-1) }, 'Previous');
    this.next = make('button', { class: 'button', type: 'button', onclick: () => this.turn(1) }, 'Next');
    this.where = make('span', { class: 'dim', role: 'status', id: 'containers-where' });
    this.body = make('tbody', { id: 'containers-rows' });
    const heads = HEADS.map((head) => make('th', { scope: 'col', class: head.number ? 'number' : null }, head.text || head));
    this.element = make('div', {},
      make('div', { class: 'bar', role: 'search' }, this.text, this.state, this.where, this.back, this.next),
      make('div', { class: 'card scroll' }, make('table', { 'aria-label': 'Containers', class: 'stack' }, make('thead', {}, make('tr', {}, heads)), this.body)));
    this.field = this.text;
    /** Those of which everything is shown. */
    this.opened = new Set();
    // Configurations are for the owner, like events.
    this.live = new Repeat(() => this.look(), () => 5000, true);
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
    this.first();
  }

  first() {
    this.offset = 0;
    this.live.now();
  }
  turn(pages) {
    this.offset = Math.max(0, this.offset + pages * LIMIT);
    this.live.now();
  }
  toggle(object) {
    const name = nameOf(object);
    if (!this.opened.delete(name)) this.opened.add(name);
    this.live.now();
  }

  async look() {
    const answer = await ask('autodiscover', { q: this.text.value.trim(), state: this.state.value, offset: this.offset, limit: LIMIT });
    if (this.offset > 0 && this.offset >= answer.matched) {
      this.offset = Math.max(0, Math.floor((answer.matched - 1) / LIMIT) * LIMIT);
      this.live.now();
      return;
    }
    const told = JSON.stringify([answer, [...this.opened], this.offset]);
    if (told === this.told) return;
    this.told = told;
    this.showStates(answer.states, answer.total);
    const last = this.offset + answer.objects.length;
    this.where.textContent = answer.matched ? `${count(this.offset + 1)}–${count(last)} of ${count(answer.matched)}` : 'no container';
    this.back.disabled = this.offset === 0;
    this.next.disabled = last >= answer.matched;
    const rows = answer.objects.flatMap((object) => {
      const isOpen = this.opened.has(nameOf(object));
      const shown = row(object, isOpen, () => this.toggle(object));
      return isOpen ? [shown, details(object)] : [shown];
    });
    // A button that has the focus keeps it.
    const focused = this.body.contains(document.activeElement) ? document.activeElement.dataset.object : null;
    const none = answer.total ? 'Nothing that was seen matches.' : `No container was seen yet by ${answer.providers.map((one) => `${one.kind} (${one.position})`).join(', ')}.`;
    if (!rows.length) rows.push(make('tr', {}, make('td', { colspan: HEADS.length, class: 'empty' }, none)));
    this.body.replaceChildren(...rows);
    if (focused) [...this.body.querySelectorAll('[data-object]')].find((button) => button.dataset.object === focused)?.focus();
  }

  showStates(states, total) {
    if (document.activeElement === this.state) return;
    const chosen = this.state.value;
    const options = [['', `all (${count(total)})`], ...Object.entries(states).map(([state, number]) => [state, `${state} (${count(number)})`])];
    this.state.replaceChildren(...options.map(([value, text]) => make('option', { value }, text)));
    this.state.value = chosen;
  }
}

const nameOf = (object) => `${object.position} ${object.id}`;

function row(object, isOpen, toggle) {
  const running = object.inputs.filter((input) => input.runs).length;
  const kind = { read: 'good', 'in part': 'warn', 'not read': 'warn' }[object.read];
  const name = make('button', { type: 'button', class: 'more', 'aria-expanded': String(isOpen), 'data-object': nameOf(object), onclick: toggle }, object.name || object.id);
  return make('tr', {},
    cell('container or pod', 'path', name, object.state === 'there' ? null : make('span', { class: 'dim' }, ` ${object.state}`)),
    cell('provider', null, object.kind, make('span', { class: 'dim' }, ` ${object.position}`)),
    cell('read', null, make('span', { class: `pill ${kind}` }, object.read)),
    cell('inputs', 'number', running === object.inputs.length ? count(running) : `${count(running)} of ${count(object.inputs.length)}`),
    cell('why', 'text', why(object)));
}

/** The reasons in a line: why inputs do not run, or else which rules were considered. */
function why(object) {
  const refused = object.inputs.filter((input) => !input.runs).map((input) => input.reason);
  const notes = object.events.flatMap((event) => event.notes);
  const told = [...new Set(refused.length ? refused : notes)];
  return told.length ? told.join('; ') : 'none of its containers has started yet';
}

/** Every rule that was considered, and every input with its configuration. */
function details(object) {
  const lines = [['id', object.id], ['state', object.state]];
  for (const event of object.events) lines.push([event.about, event.notes.length ? event.notes.join('; ') : 'nothing matches']);
  const inputs = object.inputs.flatMap((input) => [
    make('p', {}, make('span', { class: `pill ${input.runs ? 'good' : 'warn'}` }, input.runs ? 'runs' : 'does not run'),
      ` input of ${input.origin}${input.reason ? `: ${input.reason}` : ''}`),
    ...(input.warnings || []).map((warning) => make('p', {}, make('span', { class: 'pill warn' }, 'warning'), ` ${warning}`)),
    make('pre', {}, input.configuration),
  ]);
  if (!inputs.length) inputs.push(make('p', {}, `No input: ${why(object)}.`));
  return make('tr', { class: 'open' }, make('td', { colspan: HEADS.length },
    make('dl', {}, lines.flatMap(([name, text]) => [make('dt', {}, name), make('dd', {}, text)])), inputs));
}
