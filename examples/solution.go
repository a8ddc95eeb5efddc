package main

// maxProfit is the best gain of one purchase and one later sale.
func maxProfit(prices []int) int {
	lowest, best := prices[0], 0
	for _, price := range prices {
		if price < lowest {
			lowest = price
		} else if price-lowest > best {
			best = price - lowest
		}
	}
	return best
}
