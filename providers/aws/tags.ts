import type { Owner } from '../cloud.ts';
import { tagsOf } from '../tags.ts';
import { nameTag } from './names.ts';

/**
 * How a type is tagged. `map`: argument `tags`. `list`: argument `tags` of {key, value, propagateAtLaunch}. `template`:
 * as `map`, and in `tagSpecifications` for launched resources. `none`: AWS has no tags for it; it is deleted with its
 * parent.
 */
type Tagging = 'map' | 'list' | 'template' | 'none';

/** Types other than `map`. Source: the `tags` arguments in the .d.ts of @pulumi/aws 7.48. */
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

/** Resources launched from a template; each is billed and can be left over separately. */
const LAUNCHED = ['instance', 'volume', 'network-interface'];

type Tags = Record<string, string>;

/** Arguments of a resource with the owner's tags added. `part`: for the tag Name. */
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
      // Machines are tagged by the launch template: tags in both places would change twice.
      const list = Object.entries(ours).map(([key, value]) => ({ key, value, propagateAtLaunch: false }));
      return { ...args, tags: [...theirs, ...list] };
    }
  }
}
