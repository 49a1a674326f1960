### The texts of the pages in English. Every key is also in the other languages; a test says which one is missing.
### `$count` chooses the form, `$number` is the same number as it is written.

## Every page

archive-name = Holdfast web archive
skip = Skip to the content
languages = Languages
footer = Archived pages are shown as they were harvested. They may be incomplete, out of date or wrong.
pages = Pages of the list
page-next = Next page
page-previous = Previous page
page-first = First page
see-below = All addresses that begin with this one
see-exact = Captures of exactly this address
in-collection = Collection { $collection }:

## Search

search-title = Find archived pages
search-lead = Enter the address of a page to see when it was captured, and what it looked like.
search-url = Address
search-match = Find
search-match-exact = this address
search-match-prefix = all that begin with it
search-match-domain = all of its domain
search-collection = Collection
search-button = Search
search-empty = Enter an address, such as example.org.
search-help-title = Several addresses at once
search-help-star = A star at the end finds all addresses that begin like this:
search-help-domain = A star and a dot at the beginning find all addresses of a domain:

## Calendar

calendar-title = Captures of { $url }
calendar-heading = Captures
captures = { $count ->
    [one] { $number } capture
   *[other] { $number } captures
}
captures-at-least = { $count ->
    [one] more than { $number } capture
   *[other] more than { $number } captures
}
first-capture = First: { $moment }
last-capture = Last: { $moment }
years = Years
timeline = Captures by month, { $first } to { $last }
day-captures = { $count ->
    [one] { $day }: { $number } capture
   *[other] { $day }: { $number } captures
}
list-empty = Nothing was captured in this time.
list-place = { $first } to { $last } of { $number }
calendar-later = The address has more than { $number } captures. Those up to { $moment } are counted here.
calendar-on = Go on from there
calendar-earlier = Captures before { $moment } are not counted here.
calendar-all = Begin with the first one
times-are-utc = Days and times are in UTC.

## Addresses that begin with a text

urls-below = Addresses that begin with
urls-of-domain = Addresses of the domain
urls-all = { $count ->
    [one] { $number } address
   *[other] { $number } addresses
}
urls-first = { $count ->
    [one] the first address; there are more on the next page
   *[other] the first { $number } addresses; there are more on the next page
}
urls-next = { $count ->
    [one] { $number } further address; there are more on the next page
   *[other] { $number } further addresses; there are more on the next page
}
urls-rest = { $count ->
    [one] the last address
   *[other] the last { $number } addresses
}

## A capture in its frame

frame-title = { $url }, { $moment }
frame-label = Archived page, captured { $moment }
captured = Captured
captures-nav = Captures of this address
previous-capture = Previous
next-capture = Next
all-captures = All captures
without-scripts = Show without scripts

## Problems

not-found = Not found
no-page = There is nothing at this address.
no-page-advice = Search for an archived page above.
on-replay-host = This host has pages for people. Look-ups and archived files are on the replay host.
on-replay-host-advice = Ask there for the same path.
to-replay-host = The same path on the replay host
no-collection = There is no collection “{ $name }”.
no-collection-advice = Choose one of those that the search offers.
no-captures = The archive has no capture of this address.
no-captures-below = The archive has no capture of any such address.
no-captures-advice = Check the spelling, or look for addresses that begin in the same way.
blocked = Not available to you
blocked-text = The archive has captures of this address, and its rules do not let them be shown here.
blocked-advice = Some captures can be seen in reading rooms, or after some time. If you think that this is wrong, ask the people who run the archive.
bad-address = This address cannot be understood
bad-time = “{ $digits }” is not a time.
bad-time-advice = Write a year, or more digits of year, month, day, hour, minute and second, such as 2020, 20201231 or 20201231235959.
no-url = The address does not say which archived page is meant.
no-url-advice = Write its address at the end, such as /all/*/example.org, or search for it above.
url-control = Character { $number } of the address is a control character.
url-control-advice = Escape it with %, or leave it out.
url-too-long = The address is too long
url-too-long-text = Addresses of archived pages have at most { $number } characters.
url-too-long-advice = Search for the beginning of the address, and choose it from the list.
not-understood = A part of the address has a form that is not known here.
no-list-page = The list does not have this page.
no-list-page-advice = Begin with its first page: search for the address above.
too-much = Too many captures had to be looked through before one could be shown.
too-much-advice = Ask for less: a longer address, or a year.
bad-method = Not allowed
bad-method-text = Pages can be read, and nothing can be sent to them.
not-now = Not available now
not-now-advice = Nothing is lost. Try again in a moment; if it lasts, tell the people who run the archive.
busy = The server answers as many visitors as it can.
out-of-time = The index of captures did not answer in time.
index-down = The index of captures does not answer.
index-failed = The index of captures has failed; the people who run it have to look at it.
try-again = Try again

## Dates

date = { $day } { $month } { $year }
month = { $month } { $year }
moment = { $date }, { $time } UTC
month-january = January
month-february = February
month-march = March
month-april = April
month-may = May
month-june = June
month-july = July
month-august = August
month-september = September
month-october = October
month-november = November
month-december = December
weekday-monday = Monday
weekday-tuesday = Tuesday
weekday-wednesday = Wednesday
weekday-thursday = Thursday
weekday-friday = Friday
weekday-saturday = Saturday
weekday-sunday = Sunday
weekday-monday-short = Mo
weekday-tuesday-short = Tu
weekday-wednesday-short = We
weekday-thursday-short = Th
weekday-friday-short = Fr
weekday-saturday-short = Sa
weekday-sunday-short = Su
