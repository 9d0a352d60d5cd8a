import { crds } from '../../api/crd.ts';
import { readJson } from '../host/files.ts';
import { refuseLoss, settableFields } from './known-fields.ts';
import type { StateDirectory } from './state.ts';

/**
 * Fields that people can set in this Coppice's objects. Throws when a garden's objects may have fields that it would
 * drop.
 */
export async function knownFields(directory: Pick<StateDirectory, 'fieldsFile' | 'root'>): Promise<string[]> {
  const known = settableFields(crds());
  refuseLoss((await readJson<string[]>(directory.fieldsFile)) ?? [], known, directory.root);
  return known;
}
