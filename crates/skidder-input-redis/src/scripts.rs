//! What the server does to a list in one step, as scripts of it.
//!
//! Each list has a *state*, a hash beside it, with three fields for each consumer: the token of the process that is it now
//! (`owner:NAME`), how many elements were removed from its pending list since that began (`removed:NAME`), and when it was
//! seen last (`seen:NAME`, milliseconds by the server's clock). An element has a number: how many were taken before it by
//! this owner. So every step can be repeated when its answer was lost, and a process that was believed dead takes and
//! removes nothing any more.
//!
//! Each script first trims a list to what it has: a write that needs no memory. Redis allows the others after it, so a
//! server without memory can be emptied. Elements are added where they go before they are removed where they were: a step
//! that is refused in the middle repeats elements and loses none.

/// Names of the keys of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Keys {
    pub(crate) list: String,
    pub(crate) pending: String,
    pub(crate) state: String,
}

impl Keys {
    /// The keys beside a list, in the same slot of a cluster.
    pub(crate) fn new(list: &str, consumer: &str) -> Self {
        let tagged = if has_tag(list) { list.to_owned() } else { format!("{{{list}}}") };
        Self {
            list: list.to_owned(),
            pending: format!("{tagged}:skidder:pending:{consumer}"),
            state: format!("{tagged}:skidder:state"),
        }
    }
}

/// Whether a key has a part that decides its slot.
fn has_tag(key: &str) -> bool {
    let Some((_, behind)) = key.split_once('{') else { return false };
    behind.find('}').is_some_and(|end| end > 0)
}

/// Becomes the consumer: keys list, pending, state; arguments name, token. Returns how many elements are pending.
pub(crate) const CLAIM: &str = "\
local name, token = ARGV[1], ARGV[2]
redis.call('LLEN', KEYS[1])
redis.call('LTRIM', KEYS[2], 0, -1)
local time = redis.call('TIME')
redis.call('HSET', KEYS[3], 'owner:' .. name, token, 'removed:' .. name, '0', 'seen:' .. name, time[1] .. string.sub('000000' .. time[2], -6, -4))
return redis.call('LLEN', KEYS[2])
";

/// Removes what is settled and returns the next elements: those that are pending and not known yet, or else new ones, which
/// become pending. Keys list, pending, state; arguments name, token, the number up to which everything is settled, the number
/// of the next element, the most elements, the bytes that are enough, and the most bytes that are returned of one.
pub(crate) const TAKE: &str = "\
local name, token = ARGV[1], ARGV[2]
local settled, known, most, enough, cut = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local owner = redis.call('HGET', KEYS[3], 'owner:' .. name)
if not owner or owner == '' then return redis.error_reply('SKIDDERGONE no owner') end
if owner ~= token then return redis.error_reply('SKIDDERFENCED another owner') end
local removed = tonumber(redis.call('HGET', KEYS[3], 'removed:' .. name)) or 0
local pending = redis.call('LLEN', KEYS[2])
if known - removed > pending then return redis.error_reply('SKIDDERGONE elements are missing') end
redis.call('LLEN', KEYS[1])
redis.call('LTRIM', KEYS[2], 0, -1)
local time = redis.call('TIME')
local trim = math.max(settled - removed, 0)
redis.call('HSET', KEYS[3], 'removed:' .. name, string.format('%.0f', removed + trim), 'seen:' .. name, time[1] .. string.sub('000000' .. time[2], -6, -4))
if trim > 0 then
  redis.call('LTRIM', KEYS[2], trim, -1)
  removed = removed + trim
  pending = pending - trim
end
local from, at = KEYS[1], 0
if known - removed < pending then from, at = KEYS[2], known - removed end
local out, size, full = {}, 0, most == 0
while not full do
  local some = redis.call('LRANGE', from, at, at + 63)
  at = at + 64
  local add = {}
  for _, value in ipairs(some) do
    if #out >= most or (#out > 0 and size + #value > enough) then
      full = true
      break
    end
    size = size + #value
    add[#add + 1] = value
    if #value > cut then out[#out + 1] = string.sub(value, 1, cut) else out[#out + 1] = value end
  end
  if from == KEYS[1] and #add > 0 then redis.call('RPUSH', KEYS[2], unpack(add)) end
  if #some < 64 then full = true end
end
if from == KEYS[1] and #out > 0 then redis.call('LTRIM', KEYS[1], #out, -1) end
return out
";

/// Is the consumer no more, unless something is pending: keys pending, state; arguments name, token.
pub(crate) const LEAVE: &str = "\
local name, token = ARGV[1], ARGV[2]
if redis.call('HGET', KEYS[2], 'owner:' .. name) ~= token then return 0 end
if redis.call('LLEN', KEYS[1]) > 0 then return 0 end
return redis.call('HDEL', KEYS[2], 'owner:' .. name, 'removed:' .. name, 'seen:' .. name)
";

/// Gives back what a consumer left that was not seen for long: its elements become the first ones of the list, in their
/// order. Keys list, its pending list, state; arguments its name, when it was seen last, milliseconds after which it is
/// forgotten. Returns how many elements.
pub(crate) const RESCUE: &str = "\
local name = ARGV[1]
if redis.call('HGET', KEYS[3], 'seen:' .. name) ~= ARGV[2] then return 0 end
redis.call('LLEN', KEYS[1])
redis.call('LTRIM', KEYS[2], 0, -1)
redis.call('HSET', KEYS[3], 'owner:' .. name, '')
local count = 0
while true do
  local some = redis.call('LRANGE', KEYS[2], -64, -1)
  if #some == 0 then break end
  local turned = {}
  for place = #some, 1, -1 do turned[#turned + 1] = some[place] end
  redis.call('LPUSH', KEYS[1], unpack(turned))
  redis.call('LTRIM', KEYS[2], 0, -(#some + 1))
  count = count + #some
end
local time = redis.call('TIME')
if tonumber(time[1]) * 1000 - tonumber(ARGV[2]) > tonumber(ARGV[3]) then
  redis.call('HDEL', KEYS[3], 'owner:' .. name, 'removed:' .. name, 'seen:' .. name)
end
return count
";

/// Is no member of a group any more, unless something is pending: key of the stream; arguments group, consumer.
pub(crate) const LEAVE_GROUP: &str = "\
if #redis.call('XPENDING', KEYS[1], ARGV[1], '-', '+', 1, ARGV[2]) > 0 then return 0 end
return redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], ARGV[2])
";

/// How far a group is: key of the stream; argument the group. Returns the last id that was delivered to a member, and the
/// first one that is pending, if any: what is before both was acknowledged.
pub(crate) const GROUP_PROGRESS: &str = "\
local pending = redis.call('XPENDING', KEYS[1], ARGV[1])
local delivered = false
for _, group in ipairs(redis.call('XINFO', 'GROUPS', KEYS[1])) do
  local name, last
  for at = 1, #group, 2 do
    if group[at] == 'name' then name = group[at + 1] end
    if group[at] == 'last-delivered-id' then last = group[at + 1] end
  end
  if name == ARGV[1] then delivered = last end
end
return {delivered, pending[2]}
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_of_a_list_are_in_its_slot() {
        let keys = Keys::new("logs", "a");
        assert_eq!(keys.pending, "{logs}:skidder:pending:a");
        assert_eq!(keys.state, "{logs}:skidder:state");
        assert_eq!(Keys::new("{x}logs", "a").state, "{x}logs:skidder:state");
        assert_eq!(Keys::new("x{logs", "a").state, "{x{logs}:skidder:state");
    }
}
