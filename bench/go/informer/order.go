package main

// chance is the generator SplitMix64, as in bench/src/chance.rs, so that all programs read in the same order.
type chance uint64

func newChance(seed uint64, part string, number uint64) chance {
	mixed := seed
	for _, character := range []byte(part) {
		next := chance(mixed ^ uint64(character))
		mixed = next.next()
	}
	next := chance(mixed ^ number)
	return chance(next.next())
}

func (c *chance) next() uint64 {
	*c += 0x9e3779b97f4a7c15
	mixed := uint64(*c)
	mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9
	mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb
	return mixed ^ (mixed >> 31)
}

// shuffle puts sorted keys into the order in which they are read.
func shuffle[T any](keys []T) {
	order := newChance(7, "keys", 0)
	for last := len(keys) - 1; last > 0; last-- {
		other := order.next() % uint64(last+1)
		keys[last], keys[other] = keys[other], keys[last]
	}
}
