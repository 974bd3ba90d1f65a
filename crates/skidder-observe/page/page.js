// The tabs, the keys, which view is shown, and what is wrong.

import { enter, lock, make, unlock } from './core.js';
import { Containers } from './containers.js';
import { Files } from './files.js';
import { Letters } from './letters.js';
import { Overview } from './overview.js';
import { Plan } from './plan.js';
import { Problems } from './problems.js';
import { Search } from './search.js';
import { Tail } from './tail.js';

// Before a view asks for something: a token in the address opens those that show events.
await enter();

const views = [new Overview(), new Files(), new Tail(), new Search(), new Plan(), new Letters(), new Containers()];
const main = document.getElementById('main');
const bar = document.getElementById('tabs');
let shown = null;

const tabs = views.map((view) => make('button', {
  type: 'button', role: 'tab', id: `tab-${view.id}`, 'aria-controls': `view-${view.id}`, onclick: () => show(view),
}, view.name));
// The overview shows it when there is autodiscover.
tabs[views.length - 1].hidden = true;
bar.append(...tabs);
for (const view of views) {
  view.element.id = `view-${view.id}`;
  view.element.setAttribute('role', 'tabpanel');
  view.element.setAttribute('aria-labelledby', `tab-${view.id}`);
  view.element.hidden = true;
  main.append(view.element);
}

function show(view, parameters = null) {
  if (parameters && view.open) view.open(parameters);
  if (shown === view) return;
  if (shown) {
    if (shown.element.contains(document.activeElement)) document.activeElement.blur();
    shown.element.hidden = true;
    shown.hide();
  }
  lock(false);
  shown = view;
  view.element.hidden = false;
  views.forEach((one, index) => {
    tabs[index].setAttribute('aria-selected', String(one === view));
    tabs[index].tabIndex = one === view ? 0 : -1;
  });
  tabs[views.indexOf(view)].scrollIntoView({ block: 'nearest', inline: 'nearest' });
  if (!parameters) history.replaceState(null, '', `#${view.id}`);
  view.show();
}

/** What the address says: `#files?q=app&state=idle`. */
async function follow() {
  if (location.hash.startsWith('#token=')) {
    await enter();
    if (shown) {
      lock(false);
      shown.show();
    }
  }
  const [name, query] = location.hash.slice(1).split('?');
  show(views.find((view) => view.id === name) || views[0], query === undefined ? null : new URLSearchParams(query));
  if (query !== undefined) window.scrollTo(0, 0);
}
window.addEventListener('hashchange', follow);

document.getElementById('unlock').addEventListener('submit', async (event) => {
  event.preventDefault();
  const [field, said] = [document.getElementById('token'), document.getElementById('unlock-said')];
  try {
    await unlock(field.value);
    field.value = '';
    said.textContent = '';
    lock(false);
    shown.show();
  } catch (error) {
    said.textContent = error.status === 401 ? 'this is not the token' : error.message;
  }
});

bar.addEventListener('keydown', (event) => {
  const open = views.filter((_, index) => !tabs[index].hidden);
  const at = open.indexOf(shown);
  const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: open.length - 1 }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  const next = open[(to + open.length) % open.length];
  show(next);
  tabs[views.indexOf(next)].focus();
});

document.addEventListener('keydown', (event) => {
  const typing = event.target.matches('input, select, textarea');
  if (event.key === 'Escape' && typing) event.target.blur();
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === '/' && shown.field) {
    event.preventDefault();
    shown.field.focus();
    shown.field.select();
  } else if (/^[1-9]$/.test(event.key) && views[event.key - 1] && !tabs[event.key - 1].hidden) {
    show(views[event.key - 1]);
    tabs[event.key - 1].focus();
  } else if (shown.key) {
    shown.key(event);
  }
});

follow();
new Problems().live.start();
