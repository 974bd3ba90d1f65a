// What is wrong, in words, on top of every view: what, since when, why, and what to do.

import { Repeat, ask, clock, link, make, span } from './core.js';

/** Where more about a problem is to be seen. */
function place(problem) {
  if (problem.path) return link('files', { q: problem.path }, 'the file');
  if (/dead|refused|reject/.test(problem.kind)) return link('letters', {}, 'the events');
  if (['input_trouble', 'lost_before', 'queue_full'].includes(problem.kind)) return link('files', { q: problem.input || '' }, 'its sources');
  if (problem.input) return link('files', { q: problem.input }, 'its files');
  return null;
}

export class Problems {
  constructor() {
    this.list = document.getElementById('problems');
    this.live = new Repeat(() => this.look(), () => 3000);
    this.told = '';
  }

  async look() {
    const { problems } = await ask('problems');
    pulse(problems);
    const told = JSON.stringify(problems.map((problem) => [problem.what, problem.cause, problem.remedy, Math.floor((problem.since_ms || 0) / 1000)]));
    if (told === this.told) return;
    this.told = told;
    this.list.hidden = problems.length === 0;
    this.list.replaceChildren(...problems.map(row));
  }
}

function row(problem) {
  const since = problem.since ? ` since ${clock(problem.since, true)} (${span(problem.since_ms)})` : '';
  const more = place(problem);
  return make('li', { class: problem.severity },
    make('p', {}, make('strong', {}, problem.what), since, more ? make('span', {}, ' – ', more) : null),
    problem.cause ? make('p', { class: 'cause' }, problem.cause) : null,
    problem.remedy ? make('p', { class: 'remedy' }, '→ ', ...code(problem.remedy)) : null);
}

/** A text with what stands between backticks as code. */
export function code(text) {
  return text.split('`').map((part, index) => (index % 2 ? make('code', {}, part) : part));
}

function pulse(problems) {
  const errors = problems.filter((problem) => problem.severity === 'error').length;
  const text = problems.length === 0 ? 'all is well' : problems.length === 1 ? '1 problem' : `${problems.length} problems`;
  const shown = document.getElementById('pulse');
  shown.className = `pill ${errors ? 'bad' : problems.length ? 'warn' : 'good'}`;
  if (shown.textContent !== text) shown.textContent = text;
}

/** Says that nobody answers. */
export function silent() {
  const shown = document.getElementById('pulse');
  shown.className = 'pill bad';
  shown.textContent = 'no answer';
}
