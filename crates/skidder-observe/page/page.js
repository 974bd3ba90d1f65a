// The tabs, the keys, and which view is shown.

import { make } from './core.js';
import { Files } from './files.js';
import { Overview } from './overview.js';
import { Letters, Plan } from './plan.js';
import { Search } from './search.js';
import { Tail } from './tail.js';

const views = [new Overview(), new Files(), new Tail(), new Search(), new Plan(), new Letters()];
const main = document.getElementById('main');
const bar = document.getElementById('tabs');
let shown = null;

const tabs = views.map((view) => make('button', {
  type: 'button', role: 'tab', id: `tab-${view.id}`, 'aria-controls': `view-${view.id}`, onclick: () => show(view),
}, view.name));
bar.append(...tabs);
for (const view of views) {
  view.element.id = `view-${view.id}`;
  view.element.setAttribute('role', 'tabpanel');
  view.element.setAttribute('aria-labelledby', `tab-${view.id}`);
  view.element.hidden = true;
  main.append(view.element);
}

function show(view) {
  if (shown === view) return;
  if (shown) {
    if (shown.element.contains(document.activeElement)) document.activeElement.blur();
    shown.element.hidden = true;
    shown.hide();
  }
  shown = view;
  view.element.hidden = false;
  views.forEach((one, index) => {
    tabs[index].setAttribute('aria-selected', String(one === view));
    tabs[index].tabIndex = one === view ? 0 : -1;
  });
  history.replaceState(null, '', `#${view.id}`);
  view.show();
}

const named = () => views.find((view) => `#${view.id}` === location.hash);
window.addEventListener('hashchange', () => show(named() || views[0]));

bar.addEventListener('keydown', (event) => {
  const at = views.indexOf(shown);
  const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: views.length - 1 }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  const next = (to + views.length) % views.length;
  show(views[next]);
  tabs[next].focus();
});

document.addEventListener('keydown', (event) => {
  const typing = event.target.matches('input, select, textarea');
  if (event.key === 'Escape' && typing) event.target.blur();
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === '/' && shown.field) {
    event.preventDefault();
    shown.field.focus();
    shown.field.select();
  } else if (/^[1-9]$/.test(event.key) && views[event.key - 1]) {
    show(views[event.key - 1]);
    tabs[event.key - 1].focus();
  } else if (shown.key) {
    shown.key(event);
  }
});

show(named() || views[0]);
