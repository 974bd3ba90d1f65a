// Dead letters: what an output can never take, by reason, and one by one; and how to send them again.

import { Repeat, ask, bytes, cell, clock, count, link, make, table } from './core.js';

const HEADS = [{ text: 'time', number: true }, 'status', 'reason', 'source', { text: 'offset', number: true }];
const GROUPS = [{ text: 'letters', number: true }, 'status', 'reason', 'newest', 'oldest', 'from'];

export class Letters {
  name = 'Dead letters';
  id = 'letters';
  constructor() {
    this.before = [];
    this.status = null;
    this.reason = '';
    this.source = '';
    this.where = make('span', { class: 'dim grow', role: 'status', id: 'letters-where' });
    this.chosen = make('button', { class: 'button', type: 'button', id: 'letters-all', hidden: true, onclick: () => this.choose(null, '') }, 'Show all');
    this.outputs = make('select', { 'aria-label': 'Output', hidden: true, onchange: () => this.choose(null, '') });
    this.newer = make('button', { class: 'button', type: 'button', onclick: () => this.turn(-1) }, 'Newer');
    this.older = make('button', { class: 'button', type: 'button', onclick: () => this.turn(1) }, 'Older');
    this.groups = make('tbody', { id: 'letters-groups' });
    this.rows = make('tbody', { id: 'letters-rows' });
    this.remedy = make('p', { id: 'letters-remedy' });
    this.summary = make('section', { class: 'card scroll', hidden: true }, make('h2', {}, 'By reason'), table('By reason', GROUPS, this.groups), this.remedy);
    this.element = make('div', {}, this.summary,
      make('div', { class: 'bar' }, this.where, this.outputs, this.chosen, this.newer, this.older),
      make('div', { class: 'card scroll' }, table('Dead letters', HEADS, this.rows, 'letters')));
    // Only the newest page changes.
    this.live = new Repeat(() => this.look(), () => 5000, true);
    this.told = '';
  }

  async show() {
    this.live.start();
    const { outputs } = await ask('live');
    const named = outputs.filter((output) => output.dead_letters && output.id);
    this.outputs.hidden = named.length < 2;
    if (this.outputs.childElementCount !== named.length) {
      this.outputs.replaceChildren(...named.map((output) => make('option', { value: output.id }, output.id)));
      if (this.wanted) this.outputs.value = this.wanted;
      this.newest();
    }
  }
  hide() {
    this.live.stop();
  }

  /** Shows what a link asks for. */
  open(parameters) {
    this.wanted = parameters.get('output');
    if (this.wanted) this.outputs.value = this.wanted;
    this.source = parameters.get('source') || '';
    this.choose(null, '');
  }

  choose(status, reason) {
    if (status === null) this.source = this.chosen.hidden ? this.source : '';
    this.status = status;
    this.reason = reason;
    this.chosen.hidden = status === null && !this.source;
    this.newest();
  }

  newest() {
    this.before = [];
    this.told = '';
    if (this.live.on) this.live.now();
  }
  turn(pages) {
    if (pages > 0) this.before.push(this.next);
    else this.before.pop();
    this.live.now();
  }

  async look() {
    const output = this.outputs.value;
    const chosen = { status: this.status, reason: this.reason, source: this.source };
    const answer = await ask('letters', { output, before: this.before[this.before.length - 1], limit: 50, ...chosen });
    const { groups, looked_at: looked } = await ask('reasons', { output });
    this.next = answer.before;
    this.older.disabled = answer.before === null;
    this.newer.disabled = this.before.length === 0;
    const page = this.before.length ? `, page ${this.before.length + 1}` : '';
    const only = this.status === null ? (this.source ? `, of ${this.source} only` : '') : ', of one reason only';
    this.where.textContent = answer.size ? `${answer.path}, ${bytes(answer.size)}, newest first${only}${page}` : '';
    const told = JSON.stringify([answer.letters.map((letter) => letter.at), groups, output, chosen]);
    if (told === this.told) return;
    this.told = told;
    this.summary.hidden = groups.length === 0;
    this.groups.replaceChildren(...groups.map((group) => this.group(group)));
    this.remedy.replaceChildren(...remedy(groups, answer, looked));
    const rows = answer.letters.map(letterRow);
    const none = answer.before !== null ? 'None on this page; there are older ones.' : answer.path ? 'No dead letters: every event was taken, or dropped with a reason.' : 'No output keeps dead letters.';
    if (!rows.length) rows.push(make('tr', {}, make('td', { colspan: 5, class: 'empty' }, none)));
    this.rows.replaceChildren(...rows);
  }

  group(group) {
    const choose = make('button', { type: 'button', class: 'more', onclick: () => this.choose(group.status, group.kind) }, group.reason);
    return make('tr', { class: colour(group.status) },
      cell('letters', 'number', count(group.count)), cell('status', null, badge(group.status)), cell('reason', 'text', choose),
      cell('newest', null, clock(group.newest, true)), cell('oldest', null, clock(group.oldest, true)),
      cell('from', 'text', group.sources.length ? group.sources.map((path, index) => [index ? ', ' : '', link('files', { q: path }, path.split('/').pop())]).flat() : '–'));
  }
}

/** What to do, with the command for the largest group. */
function remedy(groups, answer, looked) {
  if (!groups.length) return [];
  const output = answer.output ? ` --output ${answer.output}` : '';
  const most = groups.reduce((best, group) => (group.count > best.count ? group : best));
  const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;
  const part = looked < answer.size ? ` (of the newest ${bytes(looked)})` : '';
  return [`${count(groups.reduce((sum, group) => sum + group.count, 0))} letters${part}. When the cause is mended, send them again: `,
    make('code', {}, `skidder deadletters redrive${output} --status ${most.status} --reason ${quoted(most.kind)}`),
    ' (with ', make('code', {}, '--dry-run'), ' it only says how many), or throw them away with ', make('code', {}, 'skidder deadletters drop'), '.'];
}

/** A status that may pass is amber, one that cannot is red. */
const colour = (status) => (status === 429 || status >= 500 ? 'may-pass' : 'refused');

const badge = (status) => make('span', { class: `pill ${colour(status) === 'refused' ? 'bad' : 'warn'}` }, status ? String(status) : 'here');

function letterRow(letter) {
  if (letter.problem) return make('tr', {}, make('td', { colspan: 5, class: 'dim' }, `byte ${count(letter.at)}: ${letter.problem}`));
  const event = JSON.stringify(letter.event, null, 2);
  return make('tr', { class: colour(letter.status) },
    cell('time', 'number', clock(letter['@timestamp'], true)),
    cell('status', null, badge(letter.status)),
    cell('reason', 'text', make('details', {}, make('summary', {}, letter.why || '–'), make('pre', {}, event))),
    cell('source', 'path', letter.source ? link('files', { q: letter.source }, letter.source) : '–'),
    cell('offset', 'number', count(letter.offset)));
}
