/** Views of the runs: filters with a name, kept in this browser for each person. A shared address carries one to another person. */

export interface View {
  name: string;
  /** The filters, as the address has them. */
  query: string;
}

export const VIEWS_MAX = 20;
export const VIEW_NAME_MAX = 40;
const QUERY_MAX = 2_000;
/** What stands in the address and is no filter. */
const NOT_FILTERS = ['after', 'job', 'view'];

/** The filters of an address, always in the same order. */
export function filtersOf(query: URLSearchParams): string {
  const kept = new URLSearchParams(query);
  for (const name of NOT_FILTERS) kept.delete(name);
  kept.sort();
  return kept.toString();
}

/** Reads the stored views. They are not trusted: a user of the browser's tools could have changed them. */
export function readViews(kept: string | null): View[] {
  try {
    const list: unknown = JSON.parse(kept ?? '[]');
    if (!Array.isArray(list)) return [];
    const isView = (view: Partial<View> | null) =>
      typeof view?.name === 'string' && typeof view.query === 'string' && view.name.length <= VIEW_NAME_MAX && view.query.length <= QUERY_MAX;
    const sorted = (list as View[]).filter(isView).map(({ name, query }) => ({ name, query: filtersOf(new URLSearchParams(query)) }));
    return sorted.slice(0, VIEWS_MAX);
  } catch {
    return [];
  }
}

/** A view of the same name is replaced; the oldest goes where there are too many. */
export function withView(views: readonly View[], view: View): View[] {
  return [...views.filter((other) => other.name !== view.name), view].slice(-VIEWS_MAX);
}

export function viewAddress(view: View): string {
  return view.query === '' ? '/runs' : `/runs?${view.query}`;
}

/** An address to share: a person who opens it sees the runs, and can keep the view under its name. */
export function sharedAddress(origin: string, view: View): string {
  const query = new URLSearchParams(view.query);
  query.set('view', view.name);
  return `${origin}/runs?${query}`;
}

/** One place for each person of each tenant: several may use one browser. */
export function placeOf(tenant: string, person: string): string {
  return `interlock.views.${tenant}.${person}`;
}
