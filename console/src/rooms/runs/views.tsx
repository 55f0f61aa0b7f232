/** Filters with a name, kept in this browser. */

import { useState } from 'react';
import { Button } from '../../parts/button';
import { FormDialog, Input, text } from '../../parts/form';
import { Text } from '../../parts/text';
import { Link, useAddress } from '../../route/router';

interface View {
  name: string;
  query: string;
}

const NAME = 'interlock.views';
const VIEWS_MAX = 20;

function load(): View[] {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(NAME) ?? '[]');
    const isView = (view: Partial<View>) => typeof view.name === 'string' && typeof view.query === 'string';
    return Array.isArray(kept) ? (kept as View[]).filter(isView).slice(0, VIEWS_MAX) : [];
  } catch {
    return [];
  }
}

export function SavedViews() {
  const { query } = useAddress();
  const [views, setViews] = useState(load);
  const [naming, setNaming] = useState(false);
  const kept = new URLSearchParams(query);
  kept.delete('after');
  kept.delete('job');
  const here = kept.toString();
  const known = views.find((view) => view.query === here);
  function keep(next: View[]) {
    localStorage.setItem(NAME, JSON.stringify(next));
    setViews(next);
  }
  return (
    <div className="views">
      {views.map((view) => (
        <Link key={view.name} to={`/runs?${view.query}`} className="view" aria-current={view === known ? 'true' : undefined}>
          <Text of={view.name} />
        </Link>
      ))}
      {here !== '' && known === undefined && (
        <Button look="quiet" onClick={() => setNaming(true)}>
          Save this view
        </Button>
      )}
      {known !== undefined && (
        <Button look="quiet" onClick={() => keep(views.filter((view) => view !== known))}>
          Forget this view
        </Button>
      )}
      {naming && (
        <FormDialog
          title="Save this view"
          verb="Save"
          close={() => setNaming(false)}
          act={async (form) => {
            const name = text(form, 'name');
            keep([...views.filter((view) => view.name !== name), { name, query: here }].slice(-VIEWS_MAX));
          }}
        >
          <Input name="name" label="Name" required maxLength={40} hint="It is kept in this browser." />
        </FormDialog>
      )}
    </div>
  );
}
