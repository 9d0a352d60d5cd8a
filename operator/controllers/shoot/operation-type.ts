import type { Operation } from './operation.ts';

export type OperationType = 'Create' | 'Reconcile' | 'Hibernate' | 'Wake';

/** Type of an operation; an interrupted one continues under its type. */
export function operationTypeOf({ shoot, sleeps }: Pick<Operation, 'shoot' | 'sleeps'>): OperationType {
  const last = shoot.status?.lastOperation;
  if (!last || (last.type === 'Create' && last.state !== 'Succeeded')) return 'Create';
  if (sleeps) return 'Hibernate';
  const wakes = last.type === 'Hibernate' || (last.type === 'Wake' && last.state !== 'Succeeded');
  return wakes ? 'Wake' : 'Reconcile';
}
