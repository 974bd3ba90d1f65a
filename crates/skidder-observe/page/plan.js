// Plan: what the processors of each input have become. Dead letters: what an output can never take.

import { Repeat, ask, bytes, clock, count, make } from './core.js';

export class Plan {
  name = 'Plan';
  id = 'plan';
  constructor() {
    this.element = make('div', {});
    // It changes only with the configuration.
    this.live = new Repeat(() => this.look(), () => 30_000);
  }
  show() {
    this.live.start();
  }
  hide() {
    this.live.stop();
  }

  async look() {
    const { plans } = await ask('plan');
    this.element.replaceChildren(...plans.map((plan) => {
      const to = plan.output ? ` to ${plan.output} (${plan.kind})` : ` to ${plan.kind}`;
      const steps = plan.steps || [];
      const head = make('h2', {}, plan.input, make('span', { class: 'dim' }, ` ${plan.type}${to}`));
      if (!steps.length) return make('section', { class: 'card' }, head, make('p', { class: 'dim' }, 'No processors: lines go out as they are read.'));
      return make('section', { class: 'card scroll' }, head,
        make('table', { class: 'plan' },
          make('thead', {}, make('tr', {}, make('th', { scope: 'col' }, 'when'), make('th', { scope: 'col' }, 'step'))),
          make('tbody', {}, steps.map((step) => make('tr', {}, make('td', {}, step.when), make('td', {}, step.step))))));
    }));
  }
}

export class Letters {
  name = 'Dead letters';
  id = 'letters';
  constructor() {
    this.before = [];
    this.where = make('span', { class: 'dim grow', role: 'status', id: 'letters-where' });
    this.outputs = make('select', { 'aria-label': 'Output', hidden: true, onchange: () => this.newest() });
    this.newer = make('button', { class: 'button', type: 'button', onclick: () => this.turn(-1) }, 'Newer');
    this.older = make('button', { class: 'button', type: 'button', onclick: () => this.turn(1) }, 'Older');
    this.rows = make('tbody', { id: 'letters-rows' });
    const heads = ['time', 'status', 'reason', 'source', 'offset'];
    this.element = make('div', {},
      make('div', { class: 'bar' }, this.where, this.outputs, this.newer, this.older),
      make('div', { class: 'card scroll' }, make('table', { 'aria-label': 'Dead letters' },
        make('thead', {}, make('tr', {}, heads.map((head) => make('th', { scope: 'col', class: ['time', 'status', 'offset'].includes(head) ? 'number' : null }, head)))), this.rows)));
    // Only the newest page changes.
    this.live = new Repeat(() => this.look(), () => 5000);
    this.told = '';
  }

  async show() {
    this.live.start();
    const { outputs } = await ask('live');
    const named = outputs.filter((output) => output.dead_letters && output.id);
    this.outputs.hidden = named.length < 2;
    if (this.outputs.childElementCount !== named.length) {
      this.outputs.replaceChildren(...named.map((output) => make('option', { value: output.id }, output.id)));
      this.newest();
    }
  }
  hide() {
    this.live.stop();
  }

  newest() {
    this.before = [];
    this.live.now();
  }
  turn(pages) {
    if (pages > 0) this.before.push(this.next);
    else this.before.pop();
    this.live.now();
  }

  async look() {
    const before = this.before[this.before.length - 1];
    const answer = await ask('letters', { output: this.outputs.value, before, limit: 50 });
    this.next = answer.before;
    this.older.disabled = answer.before === null;
    this.newer.disabled = this.before.length === 0;
    const page = this.before.length ? `, page ${this.before.length + 1}` : '';
    this.where.textContent = answer.size ? `${answer.path}, ${bytes(answer.size)}, newest first${page}` : '';
    const told = JSON.stringify(answer.letters.map((letter) => letter.at)) + this.outputs.value;
    if (told === this.told) return;
    this.told = told;
    const rows = answer.letters.map(letterRow);
    const none = answer.path ? 'No dead letters: every event was taken, or dropped with a reason.' : 'No output keeps dead letters.';
    if (!rows.length) rows.push(make('tr', {}, make('td', { colspan: 5, class: 'empty' }, none)));
    this.rows.replaceChildren(...rows);
  }
}

function letterRow(letter) {
  if (letter.problem) return make('tr', {}, make('td', { colspan: 5, class: 'dim' }, `byte ${count(letter.at)}: ${letter.problem}`));
  const event = JSON.stringify(letter.event, null, 2);
  return make('tr', {},
    make('td', { class: 'number' }, clock(letter['@timestamp'], true)),
    make('td', { class: 'number' }, String(letter.status || '–')),
    make('td', { class: 'text' }, make('details', {}, make('summary', {}, reasonOf(letter.reason)), make('pre', {}, event))),
    make('td', { class: 'path' }, letter.source || '–'),
    make('td', { class: 'number' }, count(letter.offset)));
}

/** Elasticsearch says its reasons as JSON. */
function reasonOf(text) {
  try {
    const { type, reason } = JSON.parse(text);
    if (type && reason) return `${type}: ${reason}`;
  } catch {
    // Another output: any text.
  }
  return text || '–';
}
