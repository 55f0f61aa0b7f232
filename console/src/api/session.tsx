/** Who is signed in, for every room. */

import { createContext, useContext, useEffect, type ReactNode } from 'react';
import { useQuery } from '@tanstack/react-query';
import { api, must, setCsrf, type Me } from './client';
import { grants, type Permission } from './permission';
import { rememberTenant } from './tenants';

const Session = createContext<Me | undefined>(undefined);

interface Props {
  children: ReactNode;
  /** What stands there until the server has said who this is. */
  before: (problem: Error | null) => ReactNode;
}

export function SessionProvider({ children, before }: Props) {
  const me = useQuery({ queryKey: ['me'], queryFn: () => must(api.GET('/api/v1/me')), staleTime: 60_000 });
  setCsrf(me.data?.csrf ?? undefined);
  const tenant = me.data?.tenant_name;
  useEffect(() => {
    if (tenant !== undefined) rememberTenant(tenant);
  }, [tenant]);
  if (me.data === undefined) return before(me.error);
  return <Session.Provider value={me.data}>{children}</Session.Provider>;
}

export function useMe(): Me {
  const me = useContext(Session);
  if (me === undefined) throw new Error('useMe stands outside of SessionProvider');
  return me;
}

/** Whether to offer it. The server checks it again. */
export function useMay(permission: Permission): boolean {
  return grants(useMe().roles, permission);
}

/** Whether a part of the console is switched on for the tenant. */
export function useFlag(flag: string): boolean {
  return useMe().flags?.includes(flag) === true;
}

export async function signOut(next = '/login'): Promise<void> {
  await must(api.POST('/api/v1/auth/logout'));
  window.location.assign(next);
}
