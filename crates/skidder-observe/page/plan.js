// Plan: what the processors of each input have become, and what each step costs on the lines that pass.

import { Repeat, ask, cell, count, make, table } from './core.js';

const HEADS = ['when', { text: 'ns/event', number: true }, { text: 'events', number: true }, { text: 'dropped', number: true }, 'step'];

export class Plan {
  name = 'Plan';
  id = 'plan';
  constructor() {
    this.element = make('div', {});
    // The plan changes only with the configuration; what it costs is measured while somebody looks.
    this.live = new Repeat(() => this.look(), () => 2000);
    this.told = '';
  }
  show() {
    this.live.start();
  }
  hide() {
    this.live.stop();
  }

  async look() {
    const { plans } = await ask('plan');
    const told = JSON.stringify(plans);
    if (told === this.told) return;
    this.told = told;
    this.element.replaceChildren(...plans.map((plan) => {
      const to = plan.output ? ` to ${plan.output} (${plan.kind})` : ` to ${plan.kind}`;
      const steps = plan.steps || [];
      const head = make('h2', {}, plan.name, make('span', { class: 'dim' }, ` ${plan.type}${to}`));
      if (!steps.length) return make('section', { class: 'card' }, head, make('p', { class: 'dim' }, 'No processors: lines go out as they are read.'));
      const sum = steps.reduce((total, step) => total + (step.events ? step.ns : 0), 0);
      const most = Math.max(...steps.map((step) => (step.events ? step.ns : 0)));
      const cost = steps.some((step) => step.events)
        ? `all steps together ${count(sum)} ns an event, measured on lines that pass while this is shown`
        : 'what each step costs is measured on the next lines that pass; so far there were none';
      return make('section', { class: 'card scroll' }, head, table('Plan', HEADS, make('tbody', {}, steps.map((step) => row(step, most))), 'plan'), make('p', { class: 'dim' }, cost));
    }));
  }
}

function row(step, most) {
  const number = (value) => (step.events ? count(value) : '–');
  const dear = step.events && step.ns === most && most > 0;
  return make('tr', {}, cell('when', null, step.when), cell('ns/event', dear ? 'number dear' : 'number', number(step.ns)),
    cell('events', 'number', number(step.events)), cell('dropped', 'number', number(step.dropped)), cell('step', 'step', step.step));
}
