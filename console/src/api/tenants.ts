/** Tenants that were signed in to in this browser, newest first: each account belongs to one. */

const NAME = 'interlock.tenants';
const TENANTS_MAX = 8;

export function withTenant(known: readonly string[], tenant: string): string[] {
  return [tenant, ...known.filter((other) => other !== tenant)].slice(0, TENANTS_MAX);
}

export function knownTenants(): string[] {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(NAME) ?? '[]');
    return Array.isArray(kept) ? kept.filter((name) => typeof name === 'string').slice(0, TENANTS_MAX) : [];
  } catch {
    return [];
  }
}

export function rememberTenant(tenant: string): void {
  localStorage.setItem(NAME, JSON.stringify(withTenant(knownTenants(), tenant)));
}

/** The sign-in page of a tenant. */
export function tenantAddress(tenant: string): string {
  return `/login?tenant=${encodeURIComponent(tenant)}`;
}
