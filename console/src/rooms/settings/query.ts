import { queryOptions } from '@tanstack/react-query';
import { api, must } from '../../api/client';

export const peopleQuery = queryOptions({
  queryKey: ['users'],
  queryFn: () => must(api.GET('/api/v1/users', { params: { query: { limit: 500 } } })),
});
