/** Who may do what: the server's own table, so that nothing is offered that it would refuse. */

import type { Schema } from './client';

export type Permission = 'read' | 'operate' | 'define' | 'vote' | 'administer';
type Role = Schema['Role'];

const GRANTS: Record<Role, readonly Permission[]> = {
  viewer: ['read'],
  operator: ['read', 'operate', 'define'],
  approver: ['read', 'vote'],
  admin: ['read', 'operate', 'define', 'vote', 'administer'],
  worker: [],
};

export function grants(roles: readonly Role[], permission: Permission): boolean {
  return roles.some((role) => GRANTS[role].includes(permission));
}
