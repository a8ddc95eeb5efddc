"""SI values -> text for people: labels, hovers, the HTML report."""
