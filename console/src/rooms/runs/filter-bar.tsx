/** The filters: all of them stand in the address. */

import { useState, type FormEvent } from 'react';
import { useQuery } from '@tanstack/react-query';
import { Icon } from '../../parts/icon';
import { wordOf } from '../../parts/state';
import { Text } from '../../parts/text';
import { at, go, useAddress, withQuery } from '../../route/router';
import { visible } from '../../text/visible';
import { searched, SINCE, STATES } from './filter';
import { workflowNames } from './query';

/** Filters that are shown as something to take away. */
const CHIPS = ['text', 'subject', 'label', 'input', 'trigger', 'workspace'];

export function FilterBar() {
  const { query, path } = useAddress();
  const workflows = useQuery(workflowNames);
  const [typed, setTyped] = useState('');

  function put(change: (next: URLSearchParams) => void) {
    const next = new URLSearchParams(query);
    change(next);
    next.delete('after');
    go(withQuery(path, next));
  }
  const set = (name: string, value: string) => put((next) => (value === '' ? next.delete(name) : next.set(name, value)));
  function search(event: FormEvent<HTMLFormElement>) {
    event.preventDefault();
    const found = searched(typed);
    if (found === undefined) return;
    setTyped('');
    // The keys are the list's again.
    event.currentTarget.querySelector('input')?.blur();
    if ('run' in found) go(at('runs', found.run));
    else if (found.name === 'text' || found.name === 'subject') set(found.name, found.value);
    else put((next) => next.append(found.name, found.value));
  }
  const chips = CHIPS.flatMap((name) => query.getAll(name).map((value) => ({ name, value })));
  return (
    <div className="filters">
      <form role="search" onSubmit={search} className="search">
        <Icon name="search" />
        <input
          id="search"
          value={typed}
          onChange={(event) => setTyped(event.target.value)}
          placeholder="Part of a subject, id, label or input; or label:value"
          aria-label="Search runs by a part of their subject, id, label or input, by label:value or by input.name:value"
          autoComplete="off"
          spellCheck={false}
        />
        <kbd aria-hidden="true">/</kbd>
      </form>
      <select aria-label="State" value={query.get('state') ?? ''} onChange={(event) => set('state', event.target.value)}>
        <option value="">Every state</option>
        {STATES.map((state) => (
          <option key={state} value={state}>
            {wordOf(state)}
          </option>
        ))}
      </select>
      <select aria-label="Workflow" value={query.get('workflow') ?? ''} onChange={(event) => set('workflow', event.target.value)}>
        <option value="">Every workflow</option>
        {workflows.data?.workflows.map(({ workflow }) => (
          <option key={workflow}>{workflow}</option>
        ))}
      </select>
      <select aria-label="Started" value={query.get('since') ?? ''} onChange={(event) => set('since', event.target.value)}>
        <option value="">At any time</option>
        {SINCE.map(([name, words]) => (
          <option key={name} value={name}>
            {words}
          </option>
        ))}
      </select>
      {chips.map(({ name, value }) => (
        <button
          key={`${name}:${value}`}
          type="button"
          className="chip"
          onClick={() => put((next) => next.delete(name, value))}
          aria-label={`Take away the filter ${name} ${visible(value)}`}
        >
          <span className="quiet">{name}</span> <Text of={value} /> <span aria-hidden="true">×</span>
        </button>
      ))}
    </div>
  );
}
