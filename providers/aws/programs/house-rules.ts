import { runtime } from '@pulumi/pulumi';
import { ADOPTED } from '../../adopted-cluster.ts';
import type { Owner } from '../../cloud.ts';
import { NAMING } from '../names.ts';
import { withTags } from '../tags.ts';

/**
 * From here on every resource of the program bears the owner's tags and a deterministic name, or declaring it throws: what
 * has neither cannot be found again after lost state, and is paid for by nobody.
 */
export function followHouseRules(owner: Owner): void {
  runtime.registerStackTransformation(({ type, name, props, opts }) => {
    if (!type.startsWith('aws:')) return undefined;
    const naming = NAMING[type];
    if (!naming) throw new TypeError(`${type} ${name}: how it is named is not said in NAMING`);
    if (typeof naming === 'object') checkName(`${type} ${name}`, props[naming.property], naming.longest);
    // What others made is not ours by its tags: the sweep would take it away.
    if (name === ADOPTED) return undefined;
    return { props: withTags(type, name, owner, props), opts };
  });
}

function checkName(resource: string, given: unknown, longest: number): void {
  if (typeof given !== 'string' || given === '') {
    // Left to Pulumi it would get a random one: a second create would make a second one.
    throw new TypeError(`${resource} has no physical name: use physicalName`);
  }
  if (given.length > longest) throw new TypeError(`${resource}: "${given}" is longer than ${longest} characters`);
}
