import { runtime } from '@pulumi/pulumi';
import { ADOPTED } from '../../adopted-cluster.ts';
import type { Owner } from '../../cloud.ts';
import { NAMING } from '../names.ts';
import { withTags } from '../tags.ts';

/**
 * Requires the owner's tags and a deterministic name for every further resource of the program, and throws otherwise: a
 * resource without them cannot be found after a loss of state, and leaks cost.
 */
export function followHouseRules(owner: Owner): void {
  runtime.registerStackTransformation(({ type, name, props, opts }) => {
    if (!type.startsWith('aws:')) return undefined;
    const naming = NAMING[type];
    if (!naming) throw new TypeError(`${type} ${name}: how it is named is not said in NAMING`);
    if (typeof naming === 'object') checkName(`${type} ${name}`, props[naming.property], naming.longest);
    // Foreign resources must not get Coppice's tags: the sweep would delete them.
    if (name === ADOPTED) return undefined;
    return { props: withTags(type, name, owner, props), opts };
  });
}

function checkName(resource: string, given: unknown, longest: number): void {
  if (typeof given !== 'string' || given === '') {
    // Pulumi's random name would let a second creation succeed.
    throw new TypeError(`${resource} has no physical name: use physicalName`);
  }
  if (given.length > longest) throw new TypeError(`${resource}: "${given}" is longer than ${longest} characters`);
}
