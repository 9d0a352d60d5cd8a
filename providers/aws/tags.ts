import type { Owner } from '../cloud.ts';
import { tagsOf } from '../tags.ts';
import { nameTag } from './names.ts';

/**
 * How a type bears tags. `map`: argument `tags`. `list`: argument `tags` of {key, value, propagateAtLaunch}. `template`: as `map`,
 * and in `tagSpecifications` for what is launched from it. `none`: AWS has no tags for it; it goes with what it belongs to.
 */
type Tagging = 'map' | 'list' | 'template' | 'none';

/** By type, where it is not `map`. Source: the `tags` arguments in the .d.ts of @pulumi/aws 7.48. */
export const TAGGING: Readonly<Record<string, Tagging>> = {
  'aws:ec2/launchTemplate:LaunchTemplate': 'template',
  'aws:autoscaling/group:Group': 'list',
  'aws:kms/alias:Alias': 'none',
  'aws:ec2/vpcIpv4CidrBlockAssociation:VpcIpv4CidrBlockAssociation': 'none',
  'aws:ec2/route:Route': 'none',
  'aws:ec2/routeTableAssociation:RouteTableAssociation': 'none',
  'aws:iam/rolePolicyAttachment:RolePolicyAttachment': 'none',
  'aws:eks/accessPolicyAssociation:AccessPolicyAssociation': 'none',
};

/** What a launch template makes; each is billed or left over on its own. */
const LAUNCHED = ['instance', 'volume', 'network-interface'];

type Tags = Record<string, string>;

/** Arguments of a resource with the owner's tags on it, whatever else it is tagged with. `part`: what it is, for the tag Name. */
export function withTags(type: string, part: string, owner: Owner, args: Record<string, any>): Record<string, any> {
  const ours: Tags = { ...tagsOf(owner), Name: nameTag(owner, part) };
  switch (TAGGING[type] ?? 'map') {
    case 'none':
      return args;
    case 'map':
      return { ...args, tags: { ...args.tags, ...ours } };
    case 'template': {
      const tags = { ...args.tags, ...ours };
      return { ...args, tags, tagSpecifications: LAUNCHED.map((resourceType) => ({ resourceType, tags })) };
    }
    case 'list': {
      const theirs = ((args.tags ?? []) as { key: string }[]).filter(({ key }) => !(key in ours));
      // Machines get their tags from the launch template: given twice, a change would show twice.
      const list = Object.entries(ours).map(([key, value]) => ({ key, value, propagateAtLaunch: false }));
      return { ...args, tags: [...theirs, ...list] };
    }
  }
}
