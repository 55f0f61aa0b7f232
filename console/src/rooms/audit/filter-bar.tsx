/** The filters: all of them stand in the address. */

import { useState, type FormEvent } from 'react';
import { go, useAddress, withQuery } from '../../route/router';
import { KINDS } from './filter';

export function AuditFilterBar() {
  const { query, path } = useAddress();
  function set(name: string, value: string) {
    const next = new URLSearchParams(query);
    if (value === '') next.delete(name);
    else next.set(name, value);
    next.delete('before');
    go(withQuery(path, next));
  }
  const kind = query.get('type') ?? '';
  return (
    <div className="filters" role="search">
      <select aria-label="What it is about" value={kind} onChange={(event) => set('type', event.target.value)}>
        <option value="">Everything</option>
        {KINDS.map(([name, words]) => (
          <option key={name} value={name}>
            {words}
          </option>
        ))}
        {kind !== '' && !KINDS.some(([name]) => name === kind) && <option>{kind}</option>}
      </select>
      <Typed key={`actor ${query.get('actor')}`} label="Person" value={query.get('actor') ?? ''} set={(value) => set('actor', value)} />
      <Typed key={`run ${query.get('run')}`} label="Run id" value={query.get('run') ?? ''} set={(value) => set('run', value)} pattern="run_[0-9a-fA-F]{32}" />
      <label className="day">
        from <input type="date" value={query.get('from') ?? ''} onChange={(event) => set('from', event.target.value)} />
      </label>
      <label className="day">
        to <input type="date" value={query.get('to') ?? ''} onChange={(event) => set('to', event.target.value)} />
      </label>
    </div>
  );
}

interface TypedProps {
  label: string;
  value: string;
  set: (value: string) => void;
  pattern?: string;
}

/** A text that counts when it is left or entered. */
function Typed({ label, value, set, pattern }: TypedProps) {
  const [typed, setTyped] = useState(value);
  const settle = (input: HTMLInputElement | null) => {
    if (input?.reportValidity() === true && typed.trim() !== value) set(typed.trim());
  };
  function submit(event: FormEvent<HTMLFormElement>) {
    event.preventDefault();
    settle(event.currentTarget.querySelector('input'));
  }
  return (
    <form onSubmit={submit} className="typed">
      <input
        value={typed}
        onChange={(event) => setTyped(event.target.value)}
        onBlur={(event) => settle(event.currentTarget)}
        placeholder={label}
        aria-label={label}
        pattern={pattern}
        title={pattern === undefined ? undefined : 'run_ and 32 letters and digits'}
        autoComplete="off"
        spellCheck={false}
      />
    </form>
  );
}
