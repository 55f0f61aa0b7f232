/** Filters with a name: one click, or one key, away. */

import { useState } from 'react';
import { useMe } from '../../api/session';
import { useKeys } from '../../keyboard/keys';
import { Button } from '../../parts/button';
import { Copy } from '../../parts/copy';
import { Dialog } from '../../parts/dialog';
import { FormDialog, Input, text } from '../../parts/form';
import { Text } from '../../parts/text';
import { visible } from '../../text/visible';
import { go, Link, useAddress } from '../../route/router';
import { filtersOf, placeOf, readViews, sharedAddress, VIEW_NAME_MAX, viewAddress, withView, type View } from './saved-views';

/** Views that have a key of their own: `1` to `9`. */
const KEYED_MAX = 9;

export function SavedViews() {
  const me = useMe();
  const { query } = useAddress();
  const place = placeOf(me.tenant, me.person ?? me.client);
  const [views, setViews] = useState(() => readViews(localStorage.getItem(place)));
  const [open, setOpen] = useState<'name' | 'all'>();
  const here = filtersOf(query);
  const known = views.find((view) => view.query === here);
  const savable = here !== '' && known === undefined;
  // The name that the person who shared the address gave the view.
  const offered = (query.get('view') ?? '').slice(0, VIEW_NAME_MAX);
  function keep(next: View[]) {
    localStorage.setItem(place, JSON.stringify(next));
    setViews(next);
  }
  useKeys('Views', [
    ...views.slice(0, KEYED_MAX).map((view, index) => ({ press: String(index + 1), does: `View “${visible(view.name)}”`, run: () => go(viewAddress(view)) })),
    ...(savable ? [{ press: 'v', does: 'Save this view', run: () => setOpen('name') }] : []),
  ]);
  return (
    <nav className="views" aria-label="Saved views">
      {views.map((view, index) => (
        <Link
          key={view.name}
          to={viewAddress(view)}
          className="view"
          aria-current={view === known ? 'true' : undefined}
          aria-keyshortcuts={index < KEYED_MAX ? String(index + 1) : undefined}
        >
          <Text of={view.name} />
        </Link>
      ))}
      {savable && (
        <Button look="quiet" press="v" onClick={() => setOpen('name')}>
          <span>{offered === '' ? 'Save this view …' : <>Save the view “<Text of={offered} />” …</>}</span>
        </Button>
      )}
      {views.length > 0 && (
        <Button look="quiet" onClick={() => setOpen('all')}>
          Views …
        </Button>
      )}
      {open === 'name' && (
        <FormDialog
          title="Save this view"
          verb="Save"
          close={() => setOpen(undefined)}
          act={async (form) => keep(withView(views, { name: text(form, 'name'), query: here }))}
        >
          <Input
            name="name"
            label="Name"
            required
            maxLength={VIEW_NAME_MAX}
            defaultValue={offered}
            hint="It is kept in this browser, for you. A view of the same name is replaced."
          />
        </FormDialog>
      )}
      {open === 'all' && <Views views={views} forget={(view) => keep(views.filter((other) => other !== view))} close={() => setOpen(undefined)} />}
    </nav>
  );
}

function Views({ views, forget, close }: { views: View[]; forget: (view: View) => void; close: () => void }) {
  return (
    <Dialog title="Saved views" close={close}>
      <p className="quiet">They are kept in this browser. A copied link shows another person the same runs, and lets them keep the view.</p>
      {views.length === 0 && <p>There are none any more.</p>}
      <ul className="view-list">
        {views.map((view) => (
          <li key={view.name}>
            <Link to={viewAddress(view)} onClick={close}>
              <Text of={view.name} />
            </Link>
            <Copy text={sharedAddress(window.location.origin, view)} what={`a link to “${visible(view.name)}”`} />
            <Button look="quiet" onClick={() => forget(view)} aria-label={`Forget the view ${visible(view.name)}`}>
              Forget
            </Button>
          </li>
        ))}
      </ul>
      <footer>
        <Button look="primary" onClick={close}>
          Done
        </Button>
      </footer>
    </Dialog>
  );
}
